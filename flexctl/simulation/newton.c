/* Newton's method of the implicit methods: the iteration matrix and its factors.

   Both solve M a + n = B tau at q = q* + c v, v = v* + c a for some c ~ h. The derivative by a is
   N = M + c (D - dF/dv) + c^2 (K - dF/dq), F = B tau, D with the slope of dry friction, but for the
   derivatives of M and of the velocity's forces, which are small of order c and left out.

   States z of a law that may be as fast as the arm are solved for too, by E = 1 - c F, F = dz'/dz
   at given q, v; how z' changes with q and v is left to the iteration. */

/* Whether the law's states are solved for: by esdirk, where they may be fast. */
static int solves_law(const state_t *s) {
  return !s->p->held && !s->p->method && (s->p->n_hat || s->p->n_own);
}

#define PROBE 1e-7 /* relative, for derivatives of the law by its states */

/* Zero for derivatives that a law does not have, as sqrt(|e|) at 0: Newton's method does without. */
static void keep_finite(double *x, casadi_int count) {
  for (casadi_int i = 0; i < count; i++)
    if (!isfinite(x[i])) x[i] = 0;
}

/* Derivatives of torques and z' by z at y, by differences. */
static void linearise_law(state_t *s, double *y) {
  const casadi_int m = s->m, n_z = s->n_z;
  double *tau = s->probe, *z = y + 2 * s->n, *known = tau + m;
  evaluate_law(s, y, tau);
  memcpy(known, s->z_rate, n_z * sizeof(double));
  for (casadi_int j = 0; j < n_z; j++) {
    const double before = z[j], step = PROBE * fmax(fabs(before), 1e-2);
    z[j] = before + step;
    evaluate_law(s, y, s->Jz + m * j);
    z[j] = before;
    for (casadi_int i = 0; i < m; i++) s->Jz[i + m * j] = (s->Jz[i + m * j] - tau[i]) / step;
    for (casadi_int i = 0; i < n_z; i++) s->F[i + n_z * j] = (s->z_rate[i] - known[i]) / step;
  }
  keep_finite(s->Jz, m * n_z);
  keep_finite(s->F, n_z * n_z);
}

/* Parts of the iteration matrix about (t, y): M, D, K of the plant and the law's derivatives. */
static void linearise(state_t *s, double t, double *y) {
  s->arg[0] = y;
  s->arg[1] = y + s->n;
  s->res[0] = s->M;
  s->res[1] = s->D;
  s->res[2] = s->K;
  run_function(s, &s->p->terms);
  s->fresh = 1;
  if (s->p->held) return;
  evaluate_reference(s, t);
  set_law_arguments(s, y);
  s->res[0] = s->Jq;
  s->res[1] = s->Jv;
  run_function(s, &s->p->law_jacobian);
  keep_finite(s->Jq, s->m * s->n);
  keep_finite(s->Jv, s->m * s->n);
  if (solves_law(s)) linearise_law(s, y);
}

/* Factors of a matrix N (n, n) by LU with partial pivoting, by columns. */
static int decompose(double *N, casadi_int n, casadi_int *pivot) {
  for (casadi_int k = 0; k < n; k++) {
    casadi_int best = k;
    for (casadi_int i = k + 1; i < n; i++)
      if (fabs(N[i + n * k]) > fabs(N[best + n * k])) best = i;
    pivot[k] = best;
    if (!(fabs(N[best + n * k]) > 0)) return SINGULAR;
    if (best != k)
      for (casadi_int j = 0; j < n; j++) {
        const double t = N[k + n * j];
        N[k + n * j] = N[best + n * j];
        N[best + n * j] = t;
      }
    const double inverse = 1 / N[k + n * k];
    for (casadi_int i = k + 1; i < n; i++) N[i + n * k] *= inverse;
    for (casadi_int j = k + 1; j < n; j++) {
      const double t = N[k + n * j];
      if (t != 0)
        for (casadi_int i = k + 1; i < n; i++) N[i + n * j] -= N[i + n * k] * t;
    }
  }
  return OK;
}

static void solve_factored(const double *N, casadi_int n, const casadi_int *pivot, double *x) {
  for (casadi_int k = 0; k < n; k++) {
    const double t = x[pivot[k]];
    x[pivot[k]] = x[k];
    x[k] = t;
  }
  for (casadi_int k = 0; k < n; k++) {
    const double t = x[k];
    for (casadi_int i = k + 1; i < n; i++) x[i] -= N[i + n * k] * t;
  }
  for (casadi_int k = n - 1; k >= 0; k--) {
    const double t = x[k] /= N[k + n * k];
    for (casadi_int i = 0; i < k; i++) x[i] -= N[i + n * k] * t;
  }
}

static void solve(const state_t *s, double *x) { solve_factored(s->N, s->n, s->pivot, x); }

/* Factor N, and E. */
static int factor(state_t *s, double c) {
  const casadi_int n = s->n, m = s->m;
  double *N = s->N;
  for (casadi_int i = 0; i < n * n; i++) N[i] = s->M[i] + c * (s->D[i] + c * s->K[i]);
  if (s->n_b) {
    evaluate_bristles(s, s->y0 + n, s->y0 + 2 * n + s->n_z, c);
    for (casadi_int i = 0; i < n; i++) N[i + n * i] += c * s->steep[i];
  }
  if (!s->p->held)
    for (casadi_int j = 0; j < n; j++)
      for (casadi_int i = 0; i < m; i++)
        N[s->p->drives[i] + n * j] -= c * (s->Jv[i + m * j] + c * s->Jq[i + m * j]);
  if (s->n_s) {
    evaluate_sliding(s, s->y0 + n);
    for (casadi_int i = 0; i < n; i++) N[i + n * i] += c * s->slide_slope[i];
    for (casadi_int j = 0; j < s->n_s; j++) {
      const casadi_int row = s->p->sticking[j];
      if (s->way[j] != 0 || s->released) continue;
      for (casadi_int i = 0; i < n; i++) N[row + n * i] = 0; /* what sticks has no acceleration */
      N[row + n * row] = 1;
    }
  }
  if (solves_law(s)) {
    const casadi_int n_z = s->n_z;
    for (casadi_int i = 0; i < n_z * n_z; i++) s->E[i] = (i % (n_z + 1) == 0) - c * s->F[i];
    if (decompose(s->E, n_z, s->z_pivot)) return SINGULAR;
  }
  return decompose(N, n, s->pivot);
}
