/* Newton's method of the implicit methods: the iteration matrix and its factors.

   Both solve M a + n = B tau at q = q* + c v, v = v* + c a for some c ~ h. The derivative by a is
   N = M + c (D - dF/dv) + c^2 (K - dF/dq), F = B tau, D with the slope of dry friction, but for the
   derivatives of M and of the velocity's forces, which are small of order c and left out. */

/* Parts of the iteration matrix about (t, y): M, D, K of the plant and the law's derivatives. */
static void linearise(state_t *s, double t, const double *y) {
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
}

/* Factor N by LU with partial pivoting, by columns. */
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
  for (casadi_int k = 0; k < n; k++) {
    casadi_int best = k;
    for (casadi_int i = k + 1; i < n; i++)
      if (fabs(N[i + n * k]) > fabs(N[best + n * k])) best = i;
    s->pivot[k] = best;
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

static void solve(const state_t *s, double *x) {
  const casadi_int n = s->n;
  const double *N = s->N;
  for (casadi_int k = 0; k < n; k++) {
    const double t = x[s->pivot[k]];
    x[s->pivot[k]] = x[k];
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
