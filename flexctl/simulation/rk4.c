/* rk4: the classical Runge-Kutta method of order 4 with a fixed step, for real time.

   Four evaluations of the forward dynamics per step, no iteration. Stable on an undamped mode while
   omega h < 2.83: the caller tests that for the loop before it runs. Source: [Hairer93]. */

static double step_rk4(state_t *s, double t, double h) {
  static const double half = 0.5, rows[3][3] = {{0.5}, {0, 0.5}, {0, 0, 1}};
  static const double weights[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
  for (int i = 1; i < 4; i++) {
    combine(s, h, rows[i - 1], i, s->y_star);
    rate(s, t + (i < 3 ? half : 1) * h, s->y_star, s->k[i]);
  }
  combine(s, h, weights, 4, s->y1);
  rate(s, t + h, s->y1, s->k[4]); /* the first stage of the next step */
  return 0;
}

static const method_t RK4 = {.rates = 5, .last = 4, .order = 0, .begin = begin_with_rate,
                             .step = step_rk4, .interpolate = hermite};
