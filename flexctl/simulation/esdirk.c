/* esdirk: the implicit half of ARK4(3)6L[2]SA, an ESDIRK method of order 4 with an embedded one of
   order 3, in second-order form.

   Every stage solves for the accelerations a of q_i = q* + h g v_i, v_i = v* + h g a_i by Newton's
   method on the inverse dynamics. The method is L-stable: undamped modes far above the motion do
   not limit the step. States of the law are solved for too; integrals alone are carried along
   without error control of their own. Source: [KennedyCarpenter03]. */

#define STAGES 6
#define LEFT 1e-3      /* of the tolerance, by which a stage that is solved may still be off */
#define QUICKEST 1e-3  /* rate of convergence; a faster one, of a smooth law, is not relied on */
static const double G = 0.25;
static const double C[STAGES] = {0, 0.5, 83.0 / 250, 31.0 / 50, 17.0 / 20, 1};
static const double A[STAGES][STAGES] = {
    {0},
    {0.25, 0.25},
    {8611.0 / 62500, -1743.0 / 31250, 0.25},
    {5012029.0 / 34652500, -654441.0 / 2922500, 174375.0 / 388108, 0.25},
    {15267082809.0 / 155376265600, -71443401.0 / 120774400, 730878875.0 / 902184768,
     2285395.0 / 8070912, 0.25},
    {82889.0 / 524892, 0, 15625.0 / 83664, 69875.0 / 102672, -2260.0 / 8211, 0.25}};
static const double B_HAT[STAGES] = {4586570599.0 / 29645900160, 0, 178811875.0 / 945068544,
                                     814220225.0 / 1159782912, -3700637.0 / 11593932,
                                     61727.0 / 225920};

/* f = M a + n - B tau at the current torque, with the force of bristles. */
static void residual(state_t *s, const double *y, const double *a) {
  s->arg[0] = y;
  s->arg[1] = y + s->n;
  s->arg[2] = a;
  s->arg[3] = s->tau;
  s->res[0] = s->f;
  run_function(s, &s->p->balance);
  for (casadi_int i = 0; i < s->n && s->n_b; i++) s->f[i] += s->push[i];
  if (s->n_s) {
    evaluate_sliding(s, y + s->n);
    for (casadi_int i = 0; i < s->n; i++) s->f[i] += s->slide[i];
    for (casadi_int j = 0; j < s->n_s && !s->released; j++) {
      const casadi_int row = s->p->sticking[j];
      if (s->way[j] != 0) continue;
      s->holding[j] = -s->f[row];
      s->f[row] = a[row];
    }
  }
  s->r->evaluations++;
}

/* States of bristles in a stage of the share hg of a step, at its rates. */
static void bend(state_t *s, double hg, double *y) {
  const casadi_int at = 2 * s->n + s->n_z;
  if (!s->n_b) return;
  evaluate_bristles(s, y + s->n, s->y_star + at, hg);
  memcpy(y + at, s->bent, s->n_b * sizeof(double));
}

/* q and v of the stage that starts at y* and has the accelerations a. */
static void place_stage(state_t *s, double hg, const double *a, double *y) {
  const casadi_int n = s->n;
  for (casadi_int i = 0; i < n; i++) {
    y[n + i] = s->y_star[n + i] + hg * a[i];
    y[i] = s->y_star[i] + hg * y[n + i];
  }
}

/* One correction of z' in a stage of the share hg, and of the torques by it. */
static void correct_law(state_t *s, double hg, double *z_rate) {
  const casadi_int n_z = s->n_z, m = s->m;
  double *d = s->z_delta;
  for (casadi_int i = 0; i < n_z; i++) d[i] = s->z_rate[i] - z_rate[i];
  solve_factored(s->E, n_z, s->z_pivot, d);
  for (casadi_int i = 0; i < n_z; i++) {
    z_rate[i] += d[i];
    for (casadi_int j = 0; j < m; j++) s->tau[j] += s->tau_z[j + m * i] * hg * d[i];
    s->z_rate[i] = z_rate[i];
  }
}

/* One correction of the rate k of a stage, of its accelerations and of z' with them; returns its
   size, with that of z' before it, in units of the tolerance. */
static double correct(state_t *s, double hg, const double *y, double *k) {
  const casadi_int n = s->n, at = 2 * n;
  const casadi_int n_z = solves_law(s) && hg > 0 ? s->n_z : 0; /* at a start z' is known */
  double *a = k + n, *z_rate = k + at, sum = 0;
  for (casadi_int i = 0; i < n; i++) s->delta[i] = -s->f[i];
  solve(s, s->delta);
  for (casadi_int i = 0; i < n; i++) {
    const double dv = hg * s->delta[i], dq = hg * dv;
    const double x = dq / weight_q(s, y[i]), z = dv / weight_v(s, y[n + i]);
    sum += x * x + z * z;
    a[i] += s->delta[i];
  }
  for (casadi_int i = 0; i < n_z; i++) {
    double moved = 0;
    for (casadi_int j = 0; j < n; j++) moved += s->X[j + n * i] * s->delta[j];
    s->z_rate[i] = z_rate[i] += moved;
    const int is_rate = i >= n_z - s->p->n_hat; /* of an estimate [q^; v^] */
    const double size = is_rate ? weight_v(s, y[at + i]) : weight_q(s, y[at + i]);
    const double x = hg * (s->z_delta[i] + moved) / size;
    sum += x * x;
  }
  return sqrt(sum / (2 * n + n_z));
}

/* Newton's method for the rate k of a stage, its state into y1; 1 if it converges. */
static int solve_stage(state_t *s, double t, double hg, double *k) {
  const casadi_int n = s->n;
  double *y = s->y1, *a = k + n, *z_rate = k + 2 * n;
  double previous = INFINITY;
  if (!s->p->held) evaluate_reference(s, t);
  for (int iteration = 0; iteration < 12; iteration++) {
    place_stage(s, hg, a, y);
    for (casadi_int i = 0; i < s->n_z; i++) y[2 * n + i] = s->y_star[2 * n + i] + hg * z_rate[i];
    evaluate_torque(s, y);
    if (solves_law(s)) correct_law(s, hg, z_rate);
    bend(s, hg, y);
    residual(s, y, a);
    const double size = correct(s, hg, y, k);
    if (!isfinite(size)) return 0;
    /* the linear rate of convergence, at first that of the stages before, says how far the next
       iterate would still move */
    const double ratio = iteration ? size / previous : s->ratio;
    const int small = size < 1e-5 || (ratio < 1 && size * ratio / (1 - ratio) < LEFT);
    if (iteration) s->ratio = fmax(s->ratio < INFINITY ? s->ratio : QUICKEST, ratio);
    if (small) {
      place_stage(s, hg, a, y);
      bend(s, hg, y);
      return 1;
    }
    if (iteration > 1 && ratio > 0.9) return 0;
    previous = size;
  }
  return 0;
}

/* Accelerations at the start of a stretch: Newton's method with h = 0, which is linear. */
static int begin_esdirk(state_t *s, double t) {
  double *a = s->k[0] + s->n;
  if (!s->fresh) linearise(s, t, s->y0);
  if (factor(s, 0)) return SINGULAR;
  if (!s->p->held) evaluate_reference(s, t);
  evaluate_torque(s, s->y0);
  memset(a, 0, s->n * sizeof(double));
  if (s->n_b) evaluate_bristles(s, s->y0 + s->n, s->y0 + 2 * s->n + s->n_z, 0);
  for (int k = 0; k < 2; k++) { /* the second takes away round-off of the first */
    residual(s, s->y0, a);
    correct(s, 0, s->y0, s->k[0]);
  }
  complete_rate(s, s->y0, s->k[0]);
  return OK;
}

/* A first guess of the rate k[i] of a stage: a parabola through those of the last three. */
static void predict_stage(const state_t *s, int i) {
  const int first = i > 3 ? i - 3 : 0;
  double *k = s->k[i];
  memset(k, 0, s->size * sizeof(double));
  for (int j = first; j < i; j++) {
    double weight = 1;
    for (int l = first; l < i; l++)
      if (l != j) weight *= (C[i] - C[l]) / (C[j] - C[l]);
    for (casadi_int r = 0; r < s->size; r++) k[r] += weight * s->k[j][r];
  }
}

static double step_esdirk(state_t *s, double t, double h) {
  const casadi_int n = s->n, size = s->size;
  double row[STAGES];
  if (!s->fresh) linearise(s, t, s->y0);
  if (factor(s, h * G)) {
    s->ratio = INFINITY;
    s->fresh = 0;
    return -1;
  }
  s->ratio = INFINITY;
  for (int i = 1; i < STAGES; i++) {
    combine(s, h, A[i], i, s->y_star);
    predict_stage(s, i);
    if (!solve_stage(s, t + C[i] * h, h * G, s->k[i])) {
      s->ratio = INFINITY;
      s->fresh = 0;
      return -1;
    }
    complete_rate(s, s->y1, s->k[i]);
  }
  for (casadi_int i = 2 * n; i < size; i++) s->y1[i] = s->y_star[i] + h * G * s->k[STAGES - 1][i];
  if (solves_law(s)) evaluate_torque(s, s->y1); /* limits are met exactly: saturation is counted */
  for (int j = 0; j < STAGES; j++) row[j] = A[STAGES - 1][j] - B_HAT[j];
  difference(s, h, row, STAGES, s->error);
  const double error = norm(s, s->error, s->y1);
  s->fresh = !(error <= 1); /* an accepted step moves y0 */
  return error;
}

static const method_t ESDIRK = {.rates = STAGES, .last = STAGES - 1, .order = 4,
                                .begin = begin_esdirk, .step = step_esdirk,
                                .interpolate = hermite};
#undef STAGES
#undef LEFT
#undef QUICKEST
