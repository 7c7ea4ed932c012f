/* midpoint: the implicit midpoint rule of Hamilton's equations with a fixed step, in second-order
   form, for long runs.

   The action over a step is h L(q_m, w) with q_m = (q0 + q1)/2 and w = (q1 - q0)/h. Making its sum
   stationary, forces F added by d'Alembert's principle, gives with the momentum p = dL/dv

       dL/dv(q_m, w) = p0 + h/2 [dL/dq(q_m, w) + F],   p1 = p0 + h [dL/dq(q_m, w) + F],

   F = B tau - D w - f(w) at the midpoint: the midpoint rule of (q, p), since p_m = (p0 + p1)/2. It is of
   order 2, symmetric, and symplectic: without damping and torques the energy stays within O(h^2) of
   its start for very long times, and the momentum about an axis of symmetry is kept to round-off.
   No mode of a linear plant limits the step, but those with omega h > 2 keep their energy and not
   their frequency. What does limit it is Newton's method, whose matrix leaves out the derivatives of
   M and of the velocity's forces: it diverges at long steps of an arm that turns fast, and earlier
   under a law that cancels those forces. The run then ends in words.
   Source: [MarsdenWest01], section 2.3. */

/* p = dT/dv and force = d(T - V)/dq - D v - f + B tau of a state y whose torques are evaluated. */
static void momentum(state_t *s, const double *y, double *p, double *force) {
  s->arg[0] = y;
  s->arg[1] = y + s->n;
  s->arg[2] = s->tau;
  s->res[0] = p;
  s->res[1] = force;
  run_function(s, &s->p->momentum);
  s->r->evaluations++;
}

static int begin_midpoint(state_t *s, double t) {
  linearise(s, t, s->y0);
  rate(s, t, s->y0, s->k[0]);
  momentum(s, s->y0, s->p0, s->f);
  return OK;
}

/* One correction of the rates w in the midpoint state y; returns its relative size. */
static double correct_midpoint(state_t *s, double h, double *y, double *p, double *force) {
  const casadi_int n = s->n;
  double largest = 0;
  momentum(s, y, p, force);
  for (casadi_int i = 0; i < n; i++) s->delta[i] = s->p0[i] + h / 2 * force[i] - p[i];
  solve(s, s->delta);
  for (casadi_int i = 0; i < n; i++) {
    const double w = y[n + i] += s->delta[i];
    largest = fmax(largest, fabs(s->delta[i]) / (1e-3 + fabs(w)));
    if (!isfinite(w)) return NAN;
  }
  return largest;
}

/* Rates w of the midpoint state y, by Newton's method down to round-off; 1 if it converges. */
static int solve_midpoint(state_t *s, double t, double h, double *y, double *p, double *force) {
  const casadi_int n = s->n;
  double previous = INFINITY;
  if (!s->p->held) evaluate_reference(s, t + h / 2);
  for (int iteration = 0; iteration < 30; iteration++) {
    for (casadi_int i = 0; i < n; i++) y[i] = s->y0[i] + h / 2 * y[n + i];
    evaluate_torque(s, y);
    for (casadi_int i = 0; i < s->n_z && !s->p->held; i++)
      y[2 * n + i] = s->y0[2 * n + i] + h / 2 * s->z_rate[i];
    const double size = correct_midpoint(s, h, y, p, force);
    if (!isfinite(size)) return 0;
    if (size < 1e-14 || (size < 1e-9 && size > previous / 4)) return 1; /* only round-off moves */
    previous = size;
  }
  return 0;
}

static double step_midpoint(state_t *s, double t, double h) {
  const casadi_int n = s->n;
  double *y = s->y_star, *k = s->k[1], *p = s->error, *force = s->f;
  if (!s->fresh) linearise(s, t, s->y0);
  if (factor(s, h / 2)) return -1;
  memcpy(y, s->y0, s->size * sizeof(double));
  for (casadi_int i = 0; i < n; i++) y[n + i] += h / 2 * s->k[0][n + i];
  if (!solve_midpoint(s, t, h, y, p, force)) return -1;
  complete_rate(s, y, k);
  for (casadi_int i = 0; i < s->size; i++) s->y1[i] = s->y0[i] + h * k[i];
  for (casadi_int i = 0; i < n; i++) s->p0[i] += h * force[i];
  /* the rates at the end: M(q1) v1 = p1; w is good enough where the law's derivatives want rates */
  memcpy(s->y1 + n, y + n, n * sizeof(double));
  linearise(s, t + h, s->y1);
  if (factor(s, 0)) return -1;
  memcpy(s->delta, s->p0, n * sizeof(double));
  solve(s, s->delta);
  /* twice the change from midpoint to end guesses the acceleration of the next step */
  for (casadi_int i = 0; i < n; i++) k[n + i] = 2 * (s->delta[i] - y[n + i]) / h;
  memcpy(s->y1 + n, s->delta, n * sizeof(double));
  return 0;
}

/* Rates at both ends, between which samples are interpolated. */
static void prepare_midpoint(state_t *s, double t, double h) {
  rate(s, t, s->y0, s->k[0]);
  rate(s, t + h, s->y1, s->k[1]);
}

static const method_t MIDPOINT = {.rates = 2, .last = 1, .order = 0, .begin = begin_midpoint,
                                  .step = step_midpoint, .prepare = prepare_midpoint,
                                  .interpolate = hermite};
