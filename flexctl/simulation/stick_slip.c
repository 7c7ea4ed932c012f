/* Joints that slip and stick: where a step meets an event, and what follows from it.

   A joint slips one way (-1 or 1) or sticks (0). It stops where its rate is zero, and breaks away
   where the force that holds it reaches its static friction F. Of all joints at rest the forces
   lambda minimise 1/2 lambda' W lambda - lambda' a0 for |lambda_j| <= F_j: see stick_slip.py. */

#define BAND 1e-7    /* of F, beyond which a joint must not be held */
#define AT_LIMIT 1e-9 /* of F: a force so near to it is at its limit */

static void begin(state_t *s, double t);

/* Torques of a state at time t. */
static void torques_at(state_t *s, double t, const double *y) {
  if (!s->p->held) evaluate_reference(s, t);
  evaluate_torque(s, y);
}

/* Forces of the joints at rest, those that are `fixed` at a limit, in s->column; SINGULAR if there
   are none. */
static int solve_free(state_t *s, const double *a0, const double *fixed) {
  const casadi_int k = s->n_s;
  for (casadi_int j = 0; j < k; j++) {
    const int free = s->way[j] == 0 && fixed[j] == 0; /* of others the row is that of 1 */
    for (casadi_int i = 0; i < k; i++) s->N[j + k * i] = free ? s->W[j + k * i] : i == j;
    s->column[j] = free ? a0[s->p->sticking[j]] : fixed[j] * s->held_by[j];
  }
  if (decompose(s->N, k, s->pivot)) return SINGULAR;
  solve_factored(s->N, k, s->pivot, s->column);
  return OK;
}

/* Of the joints at a limit the one that its force pulls most, over W_jj F_j; -1 if none is. */
static casadi_int most_pulled(const state_t *s, const double *a0, const double *fixed) {
  const casadi_int k = s->n_s;
  double most = 1e-12;
  casadi_int which = -1;
  for (casadi_int j = 0; j < k; j++) {
    if (fixed[j] == 0) continue;
    double a = a0[s->p->sticking[j]];
    for (casadi_int i = 0; i < k; i++) a -= s->W[j + k * i] * s->holding[i];
    const double pulled = -a * fixed[j] / (s->W[j + k * j] * s->held_by[j]);
    if (pulled <= most) continue;
    most = pulled;
    which = j;
  }
  return which;
}

/* Forces that hold the joints at rest, by an active set: the exact ones of those that are free, up
   to the first limit that is in the way; then the joint is free again that would move against its
   force. What is least falls with every set, but for ties. N and f are free to be overwritten.
   SINGULAR if there are none. */
static int bound_forces(state_t *s, const double *a0) {
  const casadi_int k = s->n_s;
  double *x = s->holding, *fixed = s->f; /* -1 or 1 at a limit */
  for (casadi_int j = 0; j < k; j++) x[j] = fixed[j] = 0;
  for (int turn = 0; turn < 1000; turn++) {
    if (solve_free(s, a0, fixed)) return SINGULAR;
    double share = 1;
    casadi_int which = -1;
    for (casadi_int j = 0; j < k; j++) {
      const double F = s->held_by[j], way = s->column[j] - x[j];
      if (s->way[j] != 0 || fixed[j] != 0 || fabs(s->column[j]) <= F) continue;
      const double own = (copysign(F, way) - x[j]) / way;
      if (own > share) continue;
      share = own;
      which = j;
    }
    for (casadi_int j = 0; j < k; j++) x[j] += share * (s->column[j] - x[j]);
    if (which >= 0) {
      fixed[which] = copysign(1, s->column[which]);
      x[which] = fixed[which] * s->held_by[which];
      continue;
    }
    which = most_pulled(s, a0, fixed);
    if (which < 0) break;
    fixed[which] = 0;
  }
  return OK;
}

/* Let those of the joints at rest slip that friction does not hold; 1 if M is singular. */
static int release_joints(state_t *s, double t) {
  const casadi_int n = s->n, k = s->n_s;
  double *a0 = s->k[0] + n; /* the rate at the start is found anew */
  int still = 0;
  for (casadi_int j = 0; j < k; j++) still += s->way[j] == 0;
  if (!still) return 0;
  s->released = 1;
  linearise(s, t, s->y0);
  int singular = factor(s, 0);
  if (!singular) {
    torques_at(s, t, s->y0);
    memset(a0, 0, n * sizeof(double));
    if (s->n_b) evaluate_bristles(s, s->y0 + n, s->y0 + 2 * n + s->n_z, 0);
    residual(s, s->y0, a0);
    for (casadi_int i = 0; i < n; i++) a0[i] = -s->f[i];
    solve(s, a0);
    for (casadi_int j = 0; j < k; j++) {
      memset(s->column, 0, n * sizeof(double));
      s->column[s->p->sticking[j]] = 1;
      solve(s, s->column);
      for (casadi_int i = 0; i < k; i++) s->W[i + k * j] = s->column[s->p->sticking[i]];
    }
    singular = bound_forces(s, a0) != OK;
    for (casadi_int j = 0; j < k; j++)
      if (s->way[j] == 0 && fabs(s->holding[j]) >= s->held_by[j] * (1 - AT_LIMIT))
        s->way[j] = s->holding[j] > 0 ? 1 : -1;
  }
  s->released = 0;
  return singular;
}

/* Share of the step in which a joint that slips stops, beyond it by half of the tolerance. */
static double share_of_stop(state_t *s, double h, casadi_int row, double way) {
  double low = 0, high = 1;
  const double aim = -0.5 * s->p->atol_v;
  for (int i = 0; i < 60; i++) {
    const double middle = (low + high) / 2;
    s->method->interpolate(s, h, middle, s->y_star);
    if (way * s->y_star[s->n + row] > aim) low = middle;
    else high = middle;
  }
  return high;
}

/* Share of the step to the first event beyond tolerance, 1 if none is; `changes` if one is at its
   end. */
static double first_event(state_t *s, double t, double h, int *changes) {
  const casadi_int n = s->n;
  double first = 1;
  torques_at(s, t, s->y0);
  if (s->n_b) evaluate_bristles(s, s->y0 + n, s->y0 + 2 * n + s->n_z, 0);
  residual(s, s->y0, s->k[0] + n);
  memcpy(s->column, s->holding, s->n_s * sizeof(double));
  torques_at(s, t + h, s->y1);
  if (s->n_b) evaluate_bristles(s, s->y1 + n, s->y1 + 2 * n + s->n_z, 0);
  residual(s, s->y1, s->k[s->method->last] + n);
  for (casadi_int j = 0; j < s->n_s; j++) {
    const casadi_int row = s->p->sticking[j];
    const double F = s->held_by[j], way = s->way[j];
    if (way != 0) {
      const double rate = way * s->y1[n + row];
      if (rate > 0) continue;
      *changes = 1;
      if (rate < -s->p->atol_v) first = fmin(first, share_of_stop(s, h, row, way));
    } else if (fabs(s->holding[j]) > F) {
      *changes = 1;
      if (fabs(s->holding[j]) <= F * (1 + BAND)) continue;
      const double from = fabs(s->column[j]), to = fabs(s->holding[j]);
      const double share = (F * (1 + BAND / 2) - from) / (to - from);
      first = fmin(first, share > 1e-3 && share < 1 ? share : 0.5);
    }
  }
  return h * first > 1e-13 * fmax(fabs(t), 1e-3) ? first : 1;
}

/* Stop the joints whose rates have changed sign, and release those that are not held any more. */
static void change_joints(state_t *s, double t) {
  const casadi_int n = s->n;
  for (casadi_int j = 0; j < s->n_s; j++) {
    const casadi_int row = s->p->sticking[j];
    if (s->way[j] != 0 && s->way[j] * s->y0[n + row] <= 0) {
      s->way[j] = 0;
      s->y0[n + row] = 0;
    } else if (s->way[j] == 0 && fabs(s->holding[j]) > s->held_by[j]) {
      s->way[j] = s->holding[j] > 0 ? 1 : -1;
    }
  }
  begin(s, t);
}
