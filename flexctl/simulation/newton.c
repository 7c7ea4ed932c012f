/* Newton's method of the implicit methods: the iteration matrix and its factors.

   Both solve M a + n = B tau at q = q* + c v, v = v* + c a for some c ~ h. The derivative by a is
   N = M + c (D - dF/dv) + c^2 (K - dF/dq), F = B tau, D with the slope of dry friction, but for the
   derivatives of M and of the velocity's forces, which are small of order c and left out.

   esdirk solves for the law's states too, z = z* + c z', z' = g(z, q, v): there they move by
   dz' = X da with E X = c dg/dv + c^2 dg/dq, E = 1 - c dg/dz, which adds -c dF/dz X to N. */

/* Whether the law's states are solved for. */
static int solves_law(const state_t *s) { return !s->p->held && !s->p->method && s->n_z; }

/* Zero for derivatives that a law does not have, as sqrt(|e|) at 0: Newton's method does without. */
static void keep_finite(double *x, casadi_int count) {
  for (casadi_int i = 0; i < count; i++)
    if (!isfinite(x[i])) x[i] = 0;
}

#define STEADY 0.05 /* rate of convergence, up to which derivatives of the law are kept */

/* Parts of the iteration matrix about (t, y): M, D, K of the plant and the law's derivatives, which
   may cost much more, and are kept while Newton's method converges well with them. */
static void linearise(state_t *s, double t, double *y) {
  const casadi_int n = s->n, m = s->m, n_z = s->n_z;
  s->arg[0] = y;
  s->arg[1] = y + n;
  s->res[0] = s->M;
  s->res[1] = s->D;
  s->res[2] = s->K;
  run_function(s, &s->p->terms);
  s->fresh = 1;
  if (s->p->held || s->ratio < STEADY) return;
  double *const by[] = {s->Fq, s->Fv, s->tau_z, s->Fz, s->gq, s->gv, s->gz};
  const casadi_int sizes[] = {m * n, m * n, m * n_z, m * n_z, n_z * n, n_z * n, n_z * n_z};
  evaluate_reference(s, t);
  set_law_arguments(s, y);
  const int known = solves_law(s) ? 7 : 2;
  for (int i = 0; i < 7; i++) s->res[i] = i < known ? by[i] : NULL;
  run_function(s, &s->p->law_jacobian);
  for (int i = 0; i < known; i++) keep_finite(by[i], sizes[i]);
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

/* Solve for `count` right-hand sides side by side, x (n, count) by rows. */
static void solve_rows(const double *N, casadi_int n, const casadi_int *pivot, casadi_int count,
                       double *x) {
  for (casadi_int k = 0; k < n; k++)
    for (casadi_int j = 0; j < count && pivot[k] != k; j++) {
      const double t = x[j + count * pivot[k]];
      x[j + count * pivot[k]] = x[j + count * k];
      x[j + count * k] = t;
    }
  for (casadi_int k = 0; k < n; k++)
    for (casadi_int i = k + 1; i < n; i++) {
      const double t = N[i + n * k];
      for (casadi_int j = 0; j < count && t != 0; j++) x[j + count * i] -= t * x[j + count * k];
    }
  for (casadi_int k = n - 1; k >= 0; k--) {
    for (casadi_int j = 0; j < count; j++) x[j + count * k] /= N[k + n * k];
    for (casadi_int i = 0; i < k; i++) {
      const double t = N[i + n * k];
      for (casadi_int j = 0; j < count && t != 0; j++) x[j + count * i] -= t * x[j + count * k];
    }
  }
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

/* Factor E, find X, and add its part to N. */
static int factor_law(state_t *s, double c) {
  const casadi_int n = s->n, m = s->m, n_z = s->n_z;
  for (casadi_int i = 0; i < n_z * n_z; i++) s->E[i] = (i % (n_z + 1) == 0) - c * s->gz[i];
  if (decompose(s->E, n_z, s->z_pivot)) return SINGULAR;
  for (casadi_int i = 0; i < n_z; i++)
    for (casadi_int j = 0; j < n; j++)
      s->X[j + n * i] = c * (s->gv[i + n_z * j] + c * s->gq[i + n_z * j]);
  solve_rows(s->E, n_z, s->z_pivot, n, s->X);
  for (casadi_int i = 0; i < m; i++)
    for (casadi_int l = 0; l < n_z; l++)
      for (casadi_int j = 0; j < n; j++)
        s->N[s->p->drives[i] + n * j] -= c * s->Fz[i + m * l] * s->X[j + n * l];
  return OK;
}

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
        N[s->p->drives[i] + n * j] -= c * (s->Fv[i + m * j] + c * s->Fq[i + m * j]);
  if (solves_law(s) && factor_law(s, c)) return SINGULAR;
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
  return decompose(N, n, s->pivot);
}
