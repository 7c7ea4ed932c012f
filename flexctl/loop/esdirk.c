/* Closed loop of a flexible arm, integrated with error control by the implicit
   half of ARK4(3)6L[2]SA, an ESDIRK method of order 4 with an embedded one of order 3.

   The equations are M(q) a + n(q, v) = B tau in second-order form, with n and the joint torques
   tau from compiled CasADi functions. Every stage solves for the accelerations a of
   q_i = q* + h g v_i, v_i = v* + h g a_i by Newton's method. The method is L-stable: undamped
   modes far above the motion do not limit the step. The integral
   states of the law are carried along without error control of their own.
   Source: [KennedyCarpenter03].

   A run is a list of events: a change of phase, a sample of the law, a held torque taking effect.
   Between events the right-hand side is smooth. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long long casadi_int;
typedef int (*casadi_function)(const double **, double **, casadi_int *, double *, int);

typedef struct {
  casadi_function call;
  casadi_int n_arg, n_res, n_iw, n_w;
} function_t;

typedef struct {
  double time;
  casadi_int kind;  /* 0 phase, 1 sample the law, 2 apply a sampled torque */
  casadi_int index; /* of the sample */
  double phase;     /* from here on */
} event_t;

typedef struct {
  casadi_int n, m, n_z, held;    /* coordinates, joints, integral states, law sampled and held */
  function_t inverse;            /* (q, v, a) -> f */
  function_t terms;              /* q -> M, D, K */
  function_t dissipation;        /* (q, v) -> v'Dv */
  function_t reference;          /* (t, phase) -> s, q_d, v_d, a_d */
  function_t law;                /* (s, z, q_d, v_d, a_d, q, v) -> tau, z' */
  function_t law_jacobian;       /* likewise -> dtau/dq, dtau/dv */
  double rtol, atol_q, atol_v;
  double sample_time;
  casadi_int max_steps, n_events, n_samples;
  const event_t *events;         /* the last one ends the run */
  const double *sample_times;    /* (n_samples,) ascending, within the run */
  const double *limit;           /* (m,) torque limits, to count saturation */
  const double *lowest, *highest; /* (n,) coordinates between which the model holds */
} problem_t;

typedef struct {
  double *q, *v, *a;             /* (n, n_samples) by columns */
  double *tau;                   /* (m, n_samples) */
  double *supplied, *dissipated; /* (n_samples,) */
  double *saturated;             /* (m,) seconds at the torque limit */
  casadi_int steps, rejected, evaluations;
  double time;                   /* where the run ended or failed */
  double smallest_step;
  casadi_int index;              /* of the coordinate that left its range */
} result_t;

enum { OK = 0, NO_MEMORY = 1, STEP_TOO_SMALL = 2, TOO_MANY_STEPS = 3, NOT_FINITE = 4,
       SINGULAR = 5, NO_START = 6, OUT_OF_RANGE = 7 };

#define STAGES 6
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

typedef struct {
  const problem_t *p;
  result_t *r;
  casadi_int n, m, n_z;
  const double **arg;
  double **res;
  casadi_int *iw;
  double *w;
  double *M, *D, *K, *Jq, *Jv, *N; /* iteration matrix and its parts */
  casadi_int *pivot;
  double *f, *tau, *held_tau, *samples;
  double *s_ref;                        /* s, q_d, v_d, a_d */
  double *z, *z_rate;
  double *qs[STAGES], *vs[STAGES], *as[STAGES], *zs[STAGES];
  double power[STAGES], loss[STAGES];
  double *q_star, *v_star, *z_star, *delta, *error_q, *error_v;
  double phase, energy_in, energy_out;
} state_t;

static void run_function(state_t *s, const function_t *f) {
  f->call(s->arg, s->res, s->iw, s->w, 0);
}

static void evaluate_reference(state_t *s, double t) {
  const casadi_int m = s->m;
  s->arg[0] = &t;
  s->arg[1] = &s->phase;
  s->res[0] = s->s_ref;
  for (int i = 0; i < 3; i++) s->res[1 + i] = s->s_ref + 1 + i * m;
  run_function(s, &s->p->reference);
}

static void set_law_arguments(state_t *s, const double *z, const double *q, const double *v) {
  const casadi_int m = s->m;
  s->arg[0] = s->s_ref;
  s->arg[1] = z;
  for (int i = 0; i < 3; i++) s->arg[2 + i] = s->s_ref + 1 + i * m;
  s->arg[5] = q;
  s->arg[6] = v;
}

/* Torques and integral rates; the reference must have been evaluated at this time. */
static void evaluate_law(state_t *s, const double *z, const double *q, const double *v,
                         double *tau) {
  set_law_arguments(s, z, q, v);
  s->res[0] = tau;
  s->res[1] = s->z_rate;
  run_function(s, &s->p->law);
}

static void evaluate_torque(state_t *s, const double *z, const double *q, const double *v) {
  if (s->p->held) memcpy(s->tau, s->held_tau, s->m * sizeof(double));
  else evaluate_law(s, z, q, v, s->tau);
}

/* f = M a + n - B tau at the current torque */
static void residual(state_t *s, const double *q, const double *v, const double *a) {
  s->arg[0] = q;
  s->arg[1] = v;
  s->arg[2] = a;
  s->res[0] = s->f;
  run_function(s, &s->p->inverse);
  for (casadi_int j = 0; j < s->m; j++) s->f[j] -= s->tau[j];
  s->r->evaluations++;
}

/* Parts of the iteration matrix about (t, q, v): M, D, K of the plant and the law's derivatives. */
static void linearise(state_t *s, double t, const double *z, const double *q, const double *v) {
  s->arg[0] = q;
  s->res[0] = s->M;
  s->res[1] = s->D;
  s->res[2] = s->K;
  run_function(s, &s->p->terms);
  if (s->p->held) return;
  evaluate_reference(s, t);
  set_law_arguments(s, z, q, v);
  s->res[0] = s->Jq;
  s->res[1] = s->Jv;
  run_function(s, &s->p->law_jacobian);
}

/* N = M + hg (D - B Jv) + (hg)^2 (K - B Jq), factored by LU with partial pivoting, by columns. */
static int factor(state_t *s, double hg) {
  const casadi_int n = s->n, m = s->m;
  double *N = s->N;
  for (casadi_int i = 0; i < n * n; i++) N[i] = s->M[i] + hg * (s->D[i] + hg * s->K[i]);
  if (!s->p->held)
    for (casadi_int j = 0; j < n; j++)
      for (casadi_int i = 0; i < m; i++)
        N[i + n * j] -= hg * (s->Jv[i + m * j] + hg * s->Jq[i + m * j]);
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
  for (casadi_int k = 0; k < n; k++)
    for (casadi_int i = k + 1; i < n; i++) x[i] -= N[i + n * k] * x[k];
  for (casadi_int k = n - 1; k >= 0; k--) {
    x[k] /= N[k + n * k];
    for (casadi_int i = 0; i < k; i++) x[i] -= N[i + n * k] * x[k];
  }
}

static double weight_q(const state_t *s, double q) { return s->p->atol_q + s->p->rtol * fabs(q); }
static double weight_v(const state_t *s, double v) { return s->p->atol_v + s->p->rtol * fabs(v); }

/* Root mean square of position and rate errors in units of the tolerance. */
static double norm(const state_t *s, const double *eq, const double *ev, const double *q,
                   const double *v) {
  double sum = 0;
  for (casadi_int i = 0; i < s->n; i++) {
    const double x = eq[i] / weight_q(s, q[i]), y = ev[i] / weight_v(s, v[i]);
    sum += x * x + y * y;
  }
  return sqrt(sum / (2 * s->n));
}

/* Newton's method for the accelerations of one stage; 1 if it converges. */
static int solve_stage(state_t *s, int i, double t, double h) {
  const casadi_int n = s->n, n_z = s->n_z;
  const double hg = h * G;
  double *q = s->qs[i], *v = s->vs[i], *a = s->as[i], *zr = s->zs[i];
  double previous = INFINITY;
  if (!s->p->held) evaluate_reference(s, t);
  for (int iteration = 0; iteration < 12; iteration++) {
    for (casadi_int k = 0; k < n; k++) {
      v[k] = s->v_star[k] + hg * a[k];
      q[k] = s->q_star[k] + hg * v[k];
    }
    for (casadi_int k = 0; k < n_z; k++) s->z[k] = s->z_star[k] + hg * zr[k];
    evaluate_torque(s, s->z, q, v);
    double shift = 0;
    for (casadi_int k = 0; k < n_z && !s->p->held; k++) {
      shift = fmax(shift, fabs(s->z_rate[k] - zr[k]) / (weight_q(s, zr[k])));
      zr[k] = s->z_rate[k];
    }
    residual(s, q, v, a);
    for (casadi_int k = 0; k < n; k++) s->delta[k] = -s->f[k];
    solve(s, s->delta);
    double size = 0;
    for (casadi_int k = 0; k < n; k++) {
      const double dv = hg * s->delta[k], dq = hg * dv;
      const double x = dq / weight_q(s, q[k]), y = dv / weight_v(s, v[k]);
      size += x * x + y * y;
      a[k] += s->delta[k];
    }
    size = sqrt(size / (2 * n));
    if (!isfinite(size)) return 0;
    /* the linear rate of convergence says how far the next iterate would still move */
    const double rate = iteration ? size / previous : 1;
    if (size == 0 || (shift < 1e-3 && (size < 1e-5 || (rate < 1 && size * rate / (1 - rate) < 1e-3)))) {
      for (casadi_int k = 0; k < n; k++) {
        v[k] = s->v_star[k] + hg * a[k];
        q[k] = s->q_star[k] + hg * v[k];
      }
      return 1;
    }
    if (iteration > 1 && rate > 0.9) return 0;
    previous = size;
  }
  return 0;
}

static void account(state_t *s, int i) {
  double loss = 0, power = 0;
  s->arg[0] = s->qs[i];
  s->arg[1] = s->vs[i];
  s->res[0] = &loss;
  run_function(s, &s->p->dissipation);
  for (casadi_int j = 0; j < s->m; j++) power += s->tau[j] * s->vs[i][j];
  s->power[i] = power;
  s->loss[i] = loss;
}

/* Accelerations at the start of a smooth stretch: Newton's method with h = 0 (linear, one step). */
static int start(state_t *s, double t) {
  linearise(s, t, s->z, s->qs[0], s->vs[0]);
  if (factor(s, 0)) return SINGULAR;
  if (!s->p->held) evaluate_reference(s, t);
  evaluate_torque(s, s->z, s->qs[0], s->vs[0]);
  memset(s->as[0], 0, s->n * sizeof(double));
  for (int k = 0; k < 2; k++) {
    residual(s, s->qs[0], s->vs[0], s->as[0]);
    for (casadi_int i = 0; i < s->n; i++) s->delta[i] = -s->f[i];
    solve(s, s->delta);
    for (casadi_int i = 0; i < s->n; i++) s->as[0][i] += s->delta[i];
  }
  for (casadi_int i = 0; i < s->n; i++)
    if (!isfinite(s->as[0][i])) return NO_START;
  if (s->n_z && !s->p->held) memcpy(s->zs[0], s->z_rate, s->n_z * sizeof(double));
  account(s, 0);
  return OK;
}

/* One step from stage 0; returns the error in units of the tolerance, negative if Newton fails. */
static double step(state_t *s, double t, double h) {
  const casadi_int n = s->n, n_z = s->n_z;
  if (factor(s, h * G)) return -1;
  for (int i = 1; i < STAGES; i++) {
    memcpy(s->q_star, s->qs[0], n * sizeof(double));
    memcpy(s->v_star, s->vs[0], n * sizeof(double));
    for (int j = 0; j < i; j++)
      for (casadi_int k = 0; k < n; k++) {
        s->q_star[k] += h * A[i][j] * s->vs[j][k];
        s->v_star[k] += h * A[i][j] * s->as[j][k];
      }
    for (casadi_int k = 0; k < n_z; k++) {
      s->z_star[k] = s->z[n_z + k];
      for (int j = 0; j < i; j++) s->z_star[k] += h * A[i][j] * s->zs[j][k];
    }
    memcpy(s->as[i], s->as[i - 1], n * sizeof(double));
    if (n_z) memcpy(s->zs[i], s->zs[i - 1], n_z * sizeof(double));
    if (!solve_stage(s, i, t + C[i] * h, h)) return -1;
    account(s, i);
  }
  for (casadi_int k = 0; k < n; k++) {
    s->error_q[k] = s->error_v[k] = 0;
    for (int j = 0; j < STAGES; j++) {
      const double d = h * (A[STAGES - 1][j] - B_HAT[j]);
      s->error_q[k] += d * s->vs[j][k];
      s->error_v[k] += d * s->as[j][k];
    }
  }
  return norm(s, s->error_q, s->error_v, s->qs[STAGES - 1], s->vs[STAGES - 1]);
}

/* Quintic Hermite interpolation of q, v, a between the ends of a step. */
static void interpolate(const state_t *s, double h, double x, double *q, double *v, double *a) {
  const double *q0 = s->qs[0], *v0 = s->vs[0], *a0 = s->as[0];
  const double *q1 = s->qs[STAGES - 1], *v1 = s->vs[STAGES - 1], *a1 = s->as[STAGES - 1];
  for (casadi_int k = 0; k < s->n; k++) {
    const double c1 = h * v0[k], c2 = h * h * a0[k] / 2;
    const double p = q1[k] - q0[k] - c1 - c2, r = h * v1[k] - c1 - 2 * c2;
    const double u = h * h * a1[k] - 2 * c2;
    const double c3 = 10 * p - 4 * r + u / 2, c4 = -15 * p + 7 * r - u, c5 = 6 * p - 3 * r + u / 2;
    q[k] = q0[k] + x * (c1 + x * (c2 + x * (c3 + x * (c4 + x * c5))));
    v[k] = (c1 + x * (2 * c2 + x * (3 * c3 + x * (4 * c4 + x * 5 * c5)))) / h;
    a[k] = (2 * c2 + x * (6 * c3 + x * (12 * c4 + x * 20 * c5))) / (h * h);
  }
}

static double hermite(double y0, double d0, double y1, double d1, double h, double x) {
  const double rise = y1 - y0;
  return y0 + x * (h * d0 + x * (3 * rise - h * (2 * d0 + d1) + x * (h * (d0 + d1) - 2 * rise)));
}

static void take_sample(state_t *s, casadi_int k, double t, double h, double x, double in, double out) {
  result_t *r = s->r;
  const casadi_int n = s->n, m = s->m;
  double *q = r->q + k * n, *v = r->v + k * n;
  interpolate(s, h, x, q, v, r->a + k * n);
  if (s->p->held) memcpy(r->tau + k * m, s->held_tau, m * sizeof(double));
  else {
    for (casadi_int i = 0; i < s->n_z; i++)
      s->z_star[i] = hermite(s->z[s->n_z + i], s->zs[0][i], s->z[2 * s->n_z + i],
                             s->zs[STAGES - 1][i], h, x);
    evaluate_reference(s, t);
    evaluate_law(s, s->z_star, q, v, r->tau + k * m);
  }
  r->supplied[k] = hermite(s->energy_in, s->power[0], in, s->power[STAGES - 1], h, x);
  r->dissipated[k] = hermite(s->energy_out, s->loss[0], out, s->loss[STAGES - 1], h, x);
}

static void count_saturation(state_t *s, double h) {
  for (casadi_int j = 0; j < s->m; j++)
    if (fabs(s->tau[j]) >= s->p->limit[j] * (1 - 1e-12)) s->r->saturated[j] += h;
}

static void advance(state_t *s, double h, double in, double out) {
  const casadi_int n = s->n, n_z = s->n_z;
  count_saturation(s, h);
  memcpy(s->qs[0], s->qs[STAGES - 1], n * sizeof(double));
  memcpy(s->vs[0], s->vs[STAGES - 1], n * sizeof(double));
  memcpy(s->as[0], s->as[STAGES - 1], n * sizeof(double));
  if (n_z && !s->p->held) {
    memcpy(s->z + n_z, s->z + 2 * n_z, n_z * sizeof(double));
    memcpy(s->zs[0], s->zs[STAGES - 1], n_z * sizeof(double));
  }
  s->power[0] = s->power[STAGES - 1];
  s->loss[0] = s->loss[STAGES - 1];
  s->energy_in = in;
  s->energy_out = out;
}

/* Integrate one smooth stretch from t to end; h is the step to try and is carried on. */
static int stretch(state_t *s, double t, double end, double *h_next, casadi_int *sample) {
  const problem_t *p = s->p;
  const casadi_int n_z = s->n_z;
  const double length = end - t;
  int last_failed = 0;
  while (t < end) {
    double h = fmin(*h_next, end - t);
    if (end - t - h < 1e-9 * length) h = end - t;
    if (h < 1e-14 * fmax(fabs(t), 1e-3)) return s->r->time = t, STEP_TOO_SMALL;
    if (s->r->steps + s->r->rejected >= p->max_steps) return s->r->time = t, TOO_MANY_STEPS;
    if (!last_failed) linearise(s, t, s->z + n_z, s->qs[0], s->vs[0]);
    const double error = step(s, t, h);
    if (!(error >= 0 && error <= 1)) { /* Newton failed, too inaccurate, or not a number */
      s->r->rejected++;
      last_failed = 1;
      *h_next = h * (error > 1 ? fmax(0.2, 0.9 * pow(error, -0.25)) : 0.25);
      continue;
    }
    double in = s->energy_in, out = s->energy_out;
    for (int j = 0; j < STAGES; j++) {
      in += h * A[STAGES - 1][j] * s->power[j];
      out += h * A[STAGES - 1][j] * s->loss[j];
    }
    for (casadi_int k = 0; k < n_z && !p->held; k++) {
      s->z[2 * n_z + k] = s->z[n_z + k];
      for (int j = 0; j < STAGES; j++) s->z[2 * n_z + k] += h * A[STAGES - 1][j] * s->zs[j][k];
    }
    const double now = h == end - t ? end : t + h;
    while (*sample < p->n_samples && p->sample_times[*sample] <= now) {
      const double at = p->sample_times[*sample];
      take_sample(s, *sample, at, h, (at - t) / h, in, out);
      (*sample)++;
    }
    advance(s, h, in, out);
    s->r->steps++;
    s->r->smallest_step = fmin(s->r->smallest_step, h);
    t = now;
    for (casadi_int j = 0; j < s->n; j++)
      if (s->qs[0][j] <= p->lowest[j] || s->qs[0][j] > p->highest[j])
        return s->r->time = t, s->r->index = j, OUT_OF_RANGE;
    *h_next = h * fmin(last_failed ? 1 : 4, 0.9 * pow(fmax(error, 1e-6), -0.25));
    last_failed = 0;
  }
  return OK;
}

static void handle_event(state_t *s, const event_t *e) {
  const casadi_int m = s->m, n_z = s->n_z;
  s->phase = e->phase;
  if (e->kind == 1) {
    evaluate_reference(s, e->time);
    evaluate_law(s, s->z + n_z, s->qs[0], s->vs[0], s->samples + e->index * m);
    for (casadi_int k = 0; k < n_z; k++) s->z[n_z + k] += s->p->sample_time * s->z_rate[k];
  } else if (e->kind == 2) {
    memcpy(s->held_tau, s->samples + e->index * m, m * sizeof(double));
  }
}

static int run(state_t *s, double first_step) {
  const problem_t *p = s->p;
  casadi_int sample = 0;
  double h = first_step;
  for (casadi_int e = 0; e + 1 < p->n_events; e++) {
    handle_event(s, &p->events[e]);
    const double t = p->events[e].time, end = p->events[e + 1].time;
    if (end <= t) continue;
    memcpy(s->z, s->z + s->n_z, s->n_z * sizeof(double));
    int status = start(s, t);
    if (!status) status = stretch(s, t, end, &h, &sample);
    if (status) return s->r->time = fmax(s->r->time, t), status;
    s->r->time = end;
    if (!p->held) h = fmin(h, first_step); /* a new phase begins with a jump of the torque */
  }
  for (casadi_int i = 0; i < s->n; i++)
    if (!isfinite(s->qs[0][i]) || !isfinite(s->vs[0][i])) return NOT_FINITE;
  return OK;
}

/* Integrate a run. q0, v0 (n,) and tau0 (m,) are the start; returns a status as in the enum. */
int flexctl_simulate(const problem_t *p, const double *q0, const double *v0, const double *tau0,
                     double first_step, result_t *r) {
  const casadi_int n = p->n, m = p->m, n_z = p->n_z;
  const function_t *all[] = {&p->inverse, &p->terms, &p->dissipation,
                             &p->reference, &p->law, &p->law_jacobian};
  casadi_int n_arg = 8, n_res = 8, n_iw = 1, n_w = 1, n_samples = 0;
  for (int i = 0; i < 6; i++) {
    n_arg = all[i]->n_arg > n_arg ? all[i]->n_arg : n_arg;
    n_res = all[i]->n_res > n_res ? all[i]->n_res : n_res;
    n_iw = all[i]->n_iw > n_iw ? all[i]->n_iw : n_iw;
    n_w = all[i]->n_w > n_w ? all[i]->n_w : n_w;
  }
  for (casadi_int e = 0; e < p->n_events; e++)
    if (p->events[e].index + 1 > n_samples) n_samples = p->events[e].index + 1;
  const casadi_int doubles = n_w + 4 * n * n + 2 * m * n + n + 2 * m + n_samples * m + 1 +
                             3 * m + 4 * n_z + STAGES * (3 * n + n_z) + 3 * n + n_z + 2 * n + 64;
  double *memory = calloc(doubles, sizeof(double));
  state_t s = {.p = p, .r = r, .n = n, .m = m, .n_z = n_z};
  s.arg = calloc(n_arg, sizeof *s.arg);
  s.res = calloc(n_res, sizeof *s.res);
  s.iw = calloc(n_iw, sizeof *s.iw);
  s.pivot = calloc(n, sizeof *s.pivot);
  int status = NO_MEMORY;
  if (memory && s.arg && s.res && s.iw && s.pivot) {
    double *next = memory;
#define TAKE(field, count) (s.field = next, next += (count))
    TAKE(w, n_w); TAKE(M, n * n); TAKE(D, n * n); TAKE(K, n * n); TAKE(N, n * n);
    TAKE(Jq, m * n); TAKE(Jv, m * n);
    TAKE(f, n); TAKE(tau, m); TAKE(held_tau, m); TAKE(samples, n_samples * m);
    TAKE(s_ref, 1 + 3 * m); TAKE(z, 3 * n_z); TAKE(z_rate, n_z);
    for (int i = 0; i < STAGES; i++) {
      TAKE(qs[i], n); TAKE(vs[i], n); TAKE(as[i], n); TAKE(zs[i], n_z);
    }
    TAKE(q_star, n); TAKE(v_star, n); TAKE(delta, n); TAKE(z_star, n_z);
    TAKE(error_q, n); TAKE(error_v, n);
#undef TAKE
    memcpy(s.qs[0], q0, n * sizeof(double));
    memcpy(s.vs[0], v0, n * sizeof(double));
    memcpy(s.held_tau, tau0, m * sizeof(double));
    r->smallest_step = INFINITY;
    status = run(&s, first_step);
  }
  free(memory); free(s.arg); free(s.res); free(s.iw); free(s.pivot);
  return status;
}
