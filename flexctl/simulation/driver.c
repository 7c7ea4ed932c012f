/* Driver of a run: events, steps, samples, energy account, and where the model ends.

   The equations are M(q) a + n(q, v) = B tau, with the terms and the joint torques tau, or commands
   of motors, from compiled CasADi functions. A run is a list of events: a change of phase, a sample of the law, a
   held torque taking effect. Between events the right-hand side is smooth, and one of the methods
   included below steps from one to the next. */

#include "driver.h"

/* The numbers of the lanes, one by one, for what has no vector instruction. */
static double *each(real *x) { return (double *)x; }
static double of_lane(const real *x, int l) { return ((const double *)x)[l]; }

static real all_lanes(double x) { return (real){0} + x; }

static real magnitude(real x) {
  for (int l = 0; l < LANES; l++) each(&x)[l] = fabs(each(&x)[l]);
  return x;
}

static real root(real x) {
  for (int l = 0; l < LANES; l++) each(&x)[l] = sqrt(each(&x)[l]);
  return x;
}

/* The largest of the lanes that go on; not a number if one of them is none. */
static double worst(const state_t *s, real x) {
  double most = -1;
  for (int l = 0; l < LANES && !isnan(most); l++)
    if (!s->r->status[l] && !(each(&x)[l] <= most)) most = each(&x)[l];
  return most;
}

/* A lane ends here, for the first of reasons. */
static void fail(state_t *s, int l, int status, casadi_int index) {
  if (s->r->status[l]) return;
  s->r->status[l] = status;
  s->r->time[l] = s->t;
  s->r->index[l] = index;
}

static void fail_all(state_t *s, int status) {
  for (int l = 0; l < LANES; l++) fail(s, l, status, 0);
}

/* The lane with the largest error of the last step ends, or those whose error is not a number. */
static void fail_worst(state_t *s, int status) {
  const double error = worst(s, s->off), most = isnan(error) ? INFINITY : error;
  for (int l = 0; l < LANES; l++)
    if (!(of_lane(&s->off, l) < most)) fail(s, l, status, 0);
}

static int all_failed(const state_t *s) {
  for (int l = 0; l < LANES; l++)
    if (!s->r->status[l]) return 0;
  return 1;
}

static void run_function(state_t *s, const function_t *f) {
  if (f->numbers) s->arg[f->n_in - 1] = f->numbers;
  f->call(s->arg, s->res, s->iw, s->w, 0);
}

static void evaluate_reference(state_t *s, double t) {
  s->now = all_lanes(t);
  s->arg[0] = &s->now;
  s->arg[1] = &s->phase;
  s->res[0] = s->s_ref;
  for (int i = 0; i < 3; i++) s->res[1 + i] = s->s_ref + 1 + i * s->m;
  run_function(s, &s->p->reference);
}

static void set_law_arguments(state_t *s, const real *y) {
  s->arg[0] = s->s_ref;
  s->arg[1] = y + 2 * s->n;
  for (int i = 0; i < 3; i++) s->arg[2 + i] = s->s_ref + 1 + i * s->m;
  s->arg[5] = y;
  s->arg[6] = y + s->n;
}

/* Torques and rates of the law's states; the reference must have been evaluated at this time. */
static void evaluate_law(state_t *s, const real *y, real *tau) {
  set_law_arguments(s, y);
  s->res[0] = tau;
  s->res[1] = s->z_rate;
  run_function(s, &s->p->law);
}

/* The torques that act: the law's, or those held since a sample took effect. */
static void evaluate_torque(state_t *s, const real *y) {
  if (s->p->held) memcpy(s->tau, s->held_tau, s->m * sizeof(real));
  else evaluate_law(s, y, s->tau);
}

/* Bristles whose states are w = before + c w' at the rates v: their states, rates and force. */
static void evaluate_bristles(state_t *s, const real *v, const real *before, double c) {
  s->share = all_lanes(c);
  s->arg[0] = v;
  s->arg[1] = before;
  s->arg[2] = &s->share;
  s->res[0] = s->bent;
  s->res[1] = s->bent_rate;
  s->res[2] = s->push;
  s->res[3] = s->steep;
  s->res[4] = s->taken;
  s->res[5] = s->taken + 1;
  run_function(s, &s->p->bristles);
}

/* Force of the joints that slip at the rates v, its slope, and the static friction of all. */
static void evaluate_sliding(state_t *s, const real *v) {
  s->arg[0] = v;
  s->arg[1] = s->way;
  s->res[0] = s->slide;
  s->res[1] = s->slide_slope;
  s->res[2] = s->held_by;
  run_function(s, &s->p->sliding);
}

/* Write v, z', w' and the powers into the rate k of a state y whose torques have been evaluated. */
static void complete_rate(state_t *s, const real *y, real *k) {
  const casadi_int n = s->n, n_z = s->n_z, n_b = s->n_b;
  const real *v = y + n;
  real *power = k + 2 * n + n_z + n_b;
  memcpy(k, v, n * sizeof(real));
  if (!s->p->held) memcpy(k + 2 * n, s->z_rate, n_z * sizeof(real));
  s->arg[0] = y;
  s->arg[1] = v;
  s->arg[2] = s->tau;
  s->res[0] = power;
  s->res[1] = power + 1;
  run_function(s, &s->p->power);
  if (n_b) {
    evaluate_bristles(s, v, y + 2 * n + n_z, 0);
    memcpy(k + 2 * n + n_z, s->bent_rate, n_b * sizeof(real));
    power[1] += s->taken[0];
  }
  if (s->n_s) {
    evaluate_sliding(s, v);
    for (casadi_int i = 0; i < n; i++) power[1] += v[i] * s->slide[i];
  }
}

/* k = dy/dt by forward dynamics. */
static void rate(state_t *s, double t, const real *y, real *k) {
  if (!s->p->held) evaluate_reference(s, t);
  evaluate_torque(s, y);
  s->arg[0] = y;
  s->arg[1] = y + s->n;
  s->arg[2] = s->tau;
  s->res[0] = k + s->n;
  run_function(s, &s->p->forward);
  complete_rate(s, y, k);
  s->r->evaluations++;
}

static int begin_with_rate(state_t *s, double t) {
  rate(s, t, s->y0, s->k[0]);
  return OK;
}

/* y += h sum of row[j] k[j] over the first `count` rates. */
static void add_rates(const state_t *s, double h, const double *row, int count, real *y) {
  for (int j = 0; j < count; j++) {
    const double c = h * row[j];
    const real *k = s->k[j];
    if (c != 0)
      for (casadi_int i = 0; i < s->size; i++) y[i] += c * k[i];
  }
}

/* The state of a stage, y = y0 + h sum of row[j] k[j]. */
static void combine(const state_t *s, double h, const double *row, int count, real *y) {
  memcpy(y, s->y0, s->size * sizeof(real));
  add_rates(s, h, row, count, y);
}

/* What two methods differ by, y = h sum of row[j] k[j]. */
static void difference(const state_t *s, double h, const double *row, int count, real *y) {
  memset(y, 0, s->size * sizeof(real));
  add_rates(s, h, row, count, y);
}

static real weight_q(const state_t *s, real q) { return s->p->atol_q + s->p->rtol * magnitude(q); }
static real weight_v(const state_t *s, real v) { return s->p->atol_v + s->p->rtol * magnitude(v); }

/* Sum of squares of the errors e of n positions and rates y = [q; v] in units of the tolerance. */
static real pair_squares(const state_t *s, casadi_int n, const real *e, const real *y) {
  real sum = all_lanes(0);
  for (casadi_int i = 0; i < n; i++) {
    const real x = e[i] / weight_q(s, y[i]), z = e[n + i] / weight_v(s, y[n + i]);
    sum += x * x + z * z;
  }
  return sum;
}

/* The same of a state's error e at y: of the arm, of the law's states and of an observer's
   estimate, and of bristles. Integrals count too: with anti-windup their rates jump at limits,
   where the arm does not feel them until the torque leaves its limit. */
static real squares(const state_t *s, const real *e, const real *y) {
  const casadi_int n_hat = s->p->n_hat, end = 2 * s->n + s->n_z, at = end - 2 * n_hat;
  real sum = pair_squares(s, s->n, e, y) + pair_squares(s, n_hat, e + at, y + at);
  for (casadi_int i = end; i < end + s->n_b; i++) {
    const real x = e[i] / weight_q(s, y[i]);
    sum += x * x;
  }
  for (casadi_int i = at - s->p->n_moving; i < at; i++) {
    const real x = e[i] / weight_q(s, y[i]);
    sum += x * x;
  }
  return sum;
}

/* How many errors `squares` sums up. */
static double count_squares(const state_t *s) { return 2 * (s->n + s->p->n_hat) + s->p->n_moving + s->n_b; }

static double norm(const state_t *s, const real *e, const real *y) {
  return worst(s, root(squares(s, e, y) / count_squares(s)));
}

/* Between the ends of a step: quintic Hermite interpolation of q from q, v, a; v is its derivative.
   The other states by cubic Hermite interpolation. */
static void hermite(state_t *s, double h, double x, real *y) {
  const casadi_int n = s->n;
  const real *y0 = s->y0, *y1 = s->y1, *k0 = s->k[0], *k1 = s->k[s->method->last];
  for (casadi_int i = 0; i < n; i++) {
    const real c1 = h * y0[n + i], c2 = h * h * k0[n + i] / 2;
    const real p = y1[i] - y0[i] - c1 - c2, r = h * y1[n + i] - c1 - 2 * c2;
    const real u = h * h * k1[n + i] - 2 * c2;
    const real c3 = 10 * p - 4 * r + u / 2, c4 = -15 * p + 7 * r - u, c5 = 6 * p - 3 * r + u / 2;
    y[i] = y0[i] + x * (c1 + x * (c2 + x * (c3 + x * (c4 + x * c5))));
    y[n + i] = (c1 + x * (2 * c2 + x * (3 * c3 + x * (4 * c4 + x * 5 * c5)))) / h;
  }
  for (casadi_int i = 2 * n; i < s->size; i++) {
    const real rise = y1[i] - y0[i];
    y[i] = y0[i] + x * (h * k0[i] + x * (3 * rise - h * (2 * k0[i] + k1[i]) +
                                         x * (h * (k0[i] + k1[i]) - 2 * rise)));
  }
}

#include "explicit.c"
#if LANES == 1
#include "newton.c"
#include "esdirk.c"
#include "stick_slip.c"
#include "midpoint.c"
#include "rk4.c"

static const method_t *const METHODS[] = {&ESDIRK, &EXPLICIT, &MIDPOINT, &RK4};
#else
static const method_t *const METHODS[] = {NULL, &EXPLICIT};
#endif

/* Accelerations of a sample y: the plant's. A method without forward dynamics takes the derivative
   of the cubic Hermite interpolation of v from v, a, as the second one of q magnifies round-off. */
static void sample_acceleration(state_t *s, double h, double x, const real *y, const real *tau,
                                real *a) {
  const casadi_int n = s->n;
  const real *v0 = s->y0 + n, *v1 = s->y1 + n;
  const real *a0 = s->k[0] + n, *a1 = s->k[s->method->last] + n;
  if (s->p->forward.call) {
    s->arg[0] = y;
    s->arg[1] = y + n;
    s->arg[2] = tau;
    s->res[0] = a;
    run_function(s, &s->p->forward);
    return;
  }
  for (casadi_int i = 0; i < n; i++)
    a[i] = 6 * x * (1 - x) * (v1[i] - v0[i]) / h + (1 - x) * (1 - 3 * x) * a0[i] +
           x * (3 * x - 2) * a1[i];
}

static void take_sample(state_t *s, casadi_int sample, double t, double h, double x) {
  result_t *r = s->r;
  const casadi_int n = s->n, m = s->m;
  real *y = s->y_star;
  s->method->interpolate(s, h, x, y);
  memcpy(r->q + sample * n, y, n * sizeof(real));
  memcpy(r->v + sample * n, y + n, n * sizeof(real));
  memcpy(r->z + sample * s->n_z, y + 2 * n, s->n_z * sizeof(real));
  if (s->p->held) memcpy(r->tau + sample * m, s->held_tau, m * sizeof(real));
  else {
    evaluate_reference(s, t + x * h);
    evaluate_law(s, y, r->tau + sample * m);
  }
  sample_acceleration(s, h, x, y, r->tau + sample * m, r->a + sample * n);
  r->supplied[sample] = y[2 * n + s->n_z + s->n_b];
  r->dissipated[sample] = y[2 * n + s->n_z + s->n_b + 1];
  if (!s->n_b) return;
  evaluate_bristles(s, y + n, y + 2 * n + s->n_z, 0);
  r->stored[sample] = s->taken[1];
}

/* Samples from the step that ends `now`, the first of them number *sample. */
static void take_samples(state_t *s, double t, double h, double now, casadi_int *sample) {
  const problem_t *p = s->p;
  if (*sample >= p->n_samples || p->sample_times[*sample] > now) return;
  if (s->method->prepare) s->method->prepare(s, t, h);
  for (; *sample < p->n_samples && p->sample_times[*sample] <= now; (*sample)++)
    take_sample(s, *sample, t, h, (p->sample_times[*sample] - t) / h);
}

static void count_saturation(state_t *s, double h) {
  for (casadi_int j = 0; j < s->m; j++)
    for (int l = 0; l < LANES; l++)
      if (fabs(of_lane(s->tau + j, l)) >= of_lane(s->p->limit + j, l) * (1 - 1e-12))
        each(s->r->saturated + j)[l] += h;
}

#define FASTEST 1e9 /* no joint and no deflection moves at this rate [rad/s, m/s] and means it */

/* End the lanes in which the model does not hold at y0: coordinates in their range, links not too
   steep. */
static void check_range(state_t *s) {
  const problem_t *p = s->p;
  const real *q = s->y0, *v = s->y0 + s->n;
  for (casadi_int j = 0; j < s->n; j++)
    for (int l = 0; l < LANES; l++) {
      const double x = of_lane(q + j, l);
      if (x <= of_lane(p->lowest + j, l) || x > of_lane(p->highest + j, l))
        fail(s, l, OUT_OF_RANGE, j);
      if (!(fabs(of_lane(v + j, l)) < FASTEST && isfinite(x))) fail(s, l, NOT_FINITE, j);
    }
  if (!p->n_lines || all_failed(s)) return;
  s->arg[0] = q;
  s->res[0] = s->slopes + p->n_lines;
  s->res[1] = s->slopes;
  run_function(s, &p->deflections);
  for (casadi_int j = 0; j < p->n_lines; j++)
    for (int l = 0; l < LANES; l++)
      if (fabs(of_lane(s->slopes + j, l)) > p->steepest) fail(s, l, TOO_STEEP, j);
}

/* The next step: what the error allows, with what would hardly be left after it; or an equal part
   of what is left, not above the fixed. */
static double next_step(const state_t *s, double wanted, double left, double hardly) {
  if (!s->method->order) return left / fmax(1, ceil(left / s->p->fixed_step - 1e-6));
  return left - wanted < hardly ? left : wanted;
}

/* Integrate one smooth stretch from t to end; h is the step to try and is carried on. */
static void stretch(state_t *s, double t, double end, double *h_next, casadi_int *sample) {
  const problem_t *p = s->p;
  const method_t *method = s->method;
  const double length = end - t;
  int last_failed = 0;
  while (t < end && !all_failed(s)) {
    const double h = next_step(s, *h_next, end - t, fmax(1e-9 * length, 1e-13 * fabs(end)));
    s->t = t;
    if (h < 1e-14 * fmax(fabs(t), 1e-3)) {
      fail_worst(s, STEP_TOO_SMALL);
      *h_next = 1e-6 * length; /* of the others, which the error brings to their own */
      continue;
    }
    if (s->r->steps + s->r->rejected >= p->max_steps) return fail_all(s, TOO_MANY_STEPS);
    const double error = method->step(s, t, h);
    if (!(error >= 0 && error <= 1)) { /* Newton failed, too inaccurate, or not a number */
      if (!method->order) return fail_all(s, error < 0 ? NO_CONVERGENCE : NOT_FINITE);
      s->r->rejected++;
      last_failed = 1;
      *h_next = h * (error > 1 ? fmax(0.2, 0.9 * pow(error, -1.0 / method->order)) : 0.25);
      continue;
    }
    int changes = 0;
#if LANES == 1
    const double share = s->n_s ? first_event(s, t, h, &changes) : 1;
    if (share < 1) { /* the step ends beyond an event */
      *h_next = share * h;
      continue;
    }
#endif
    const double now = h == end - t ? end : t + h;
    count_saturation(s, h);
    take_samples(s, t, h, now, sample);
    memcpy(s->y0, s->y1, s->size * sizeof(real));
    memcpy(s->k[0], s->k[method->last], s->size * sizeof(real));
    s->r->steps++;
    s->t = t = now;
    check_range(s);
    if (method->order)
      *h_next = h * fmin(last_failed ? 1 : 4, 0.9 * pow(fmax(error, 1e-6), -1.0 / method->order));
    last_failed = 0;
#if LANES == 1
    if (changes && !all_failed(s)) change_joints(s, t);
#else
    (void)changes;
#endif
  }
}

static void handle_event(state_t *s, const event_t *e) {
  const casadi_int m = s->m;
  s->phase = all_lanes(e->phase);
  if (e->kind == 1) {
    const casadi_int w = s->p->n_noise;
    memcpy(s->y0 + 2 * s->n + s->p->noise_row, s->p->noise + e->index * w, w * sizeof(real));
    evaluate_reference(s, e->time);
    evaluate_law(s, s->y0, s->samples + e->index * m);
    for (casadi_int i = 0; i < s->n_z; i++) s->y0[2 * s->n + i] += s->p->sample_time * s->z_rate[i];
  } else if (e->kind == 2) {
    memcpy(s->held_tau, s->samples + e->index * m, m * sizeof(real));
  }
}

static void begin(state_t *s, double t) {
  s->t = t;
  s->fresh = 0;
  s->ratio = INFINITY;
#if LANES == 1
  if (s->n_s && release_joints(s, t)) return fail_all(s, SINGULAR);
#endif
  const int status = s->method->begin(s, t);
  if (status) return fail_all(s, status);
  for (casadi_int i = 0; i < s->size; i++)
    for (int l = 0; l < LANES; l++)
      if (!isfinite(of_lane(s->k[0] + i, l))) fail(s, l, NO_START, 0);
}

static void run(state_t *s, double first_step) {
  const problem_t *p = s->p;
  casadi_int sample = 0;
  double h = first_step;
  check_range(s);
  for (casadi_int e = 0; e + 1 < p->n_events && !all_failed(s); e++) {
    handle_event(s, &p->events[e]);
    const double t = p->events[e].time, end = p->events[e + 1].time;
    if (end <= t) continue;
    begin(s, t);
    stretch(s, t, end, &h, &sample);
    if (!p->held) h = fmin(h, first_step); /* a new phase begins with a jump of the torque */
  }
}

/* Integrate a run. q0, v0 (n,), z0 (n_z,) and tau0 (m,) are the start; returns whether there was the
   memory for it, and in the result how each lane ended. */
int flexctl_simulate(const problem_t *p, const real *q0, const real *v0, const real *z0,
                     const real *tau0, double first_step, result_t *r) {
  const casadi_int n = p->n, m = p->m, n_z = p->n_z, n_b = p->n_b;
  const casadi_int size = 2 * n + n_z + n_b + 2, n_s = p->n_s;
  const function_t *all[] = {&p->balance, &p->forward, &p->momentum, &p->terms, &p->power,
                             &p->bristles, &p->sliding, &p->deflections, &p->reference, &p->law,
                             &p->law_jacobian};
  casadi_int n_arg = 8, n_res = 8, n_iw = 1, n_w = 1, n_held = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!all[i]->call) continue;
    n_arg = all[i]->n_arg > n_arg ? all[i]->n_arg : n_arg;
    n_res = all[i]->n_res > n_res ? all[i]->n_res : n_res;
    n_iw = all[i]->n_iw > n_iw ? all[i]->n_iw : n_iw;
    n_w = all[i]->n_w > n_w ? all[i]->n_w : n_w;
  }
  for (casadi_int e = 0; e < p->n_events; e++)
    if (p->events[e].index + 1 > n_held) n_held = p->events[e].index + 1;
  const casadi_int reals = n_w + (4 + MOST_RATES + DENSE) * size + (2 + n_held) * m + 1 + 3 * m +
                             n_z + 2 * p->n_lines + 4 * n * n + 2 * m * n + 8 * n + 2 * n_b +
                             n_s * (3 + n_s) + n_z * (2 * m + 3 * n + 2 * n_z + 1);
  state_t s = {.p = p, .method = METHODS[p->method], .r = r, .n = n, .m = m, .n_z = n_z,
               .n_b = n_b, .n_s = n_s, .size = size};
  real *memory = calloc(reals, sizeof(real));
  s.arg = calloc(n_arg, sizeof *s.arg);
  s.res = calloc(n_res, sizeof *s.res);
  s.iw = calloc(n_iw, sizeof *s.iw);
  s.pivot = calloc(n, sizeof *s.pivot);
  s.z_pivot = calloc(n_z + 1, sizeof *s.z_pivot);
  int status = NO_MEMORY;
  if (memory && s.arg && s.res && s.iw && s.pivot && s.z_pivot) {
    real *next = memory;
#define TAKE(field, count) (s.field = next, next += (count))
    TAKE(w, n_w);
    for (int i = 0; i < MOST_RATES; i++) TAKE(k[i], size);
    for (int i = 0; i < DENSE; i++) TAKE(dense[i], size);
    TAKE(y0, size); TAKE(y1, size); TAKE(y_star, size); TAKE(error, size);
    TAKE(tau, m); TAKE(held_tau, m); TAKE(samples, n_held * m);
    TAKE(s_ref, 1 + 3 * m); TAKE(z_rate, n_z); TAKE(slopes, 2 * p->n_lines);
    TAKE(M, n * n); TAKE(D, n * n); TAKE(K, n * n); TAKE(N, n * n);
    TAKE(Fq, m * n); TAKE(Fv, m * n); TAKE(Fz, m * n_z); TAKE(tau_z, m * n_z);
    TAKE(gq, n_z * n); TAKE(gv, n_z * n); TAKE(gz, n_z * n_z);
    TAKE(E, n_z * n_z); TAKE(X, n_z * n); TAKE(z_delta, n_z);
    TAKE(f, n); TAKE(delta, n); TAKE(p0, n);
    TAKE(push, n); TAKE(steep, n); TAKE(bent, n_b); TAKE(bent_rate, n_b);
    TAKE(way, n_s); TAKE(holding, n_s); TAKE(held_by, n_s); TAKE(W, n_s * n_s);
    TAKE(slide, n); TAKE(slide_slope, n); TAKE(column, n);
#undef TAKE
    memcpy(s.y0, q0, n * sizeof(real));
    memcpy(s.y0 + n, v0, n * sizeof(real));
    memcpy(s.y0 + 2 * n, z0, n_z * sizeof(real));
    memcpy(s.held_tau, tau0, m * sizeof(real));
#if LANES == 1
    for (casadi_int j = 0; j < n_s; j++) s.way[j] = (v0[p->sticking[j]] > 0) - (v0[p->sticking[j]] < 0);
#endif
    run(&s, first_step);
    status = OK;
  }
  free(memory); free(s.arg); free(s.res); free(s.iw); free(s.pivot); free(s.z_pivot);
  return status;
}

/* What the caller's copies of the two structures must measure. */
void flexctl_sizes(casadi_int *problem, casadi_int *result) {
  *problem = sizeof(problem_t);
  *result = sizeof(result_t);
}
