/* Closed loop of a flexible arm: what the driver of a run and its methods share.

   The state of a run is y = [q; v; z; w; supplied; dissipated], of `size` entries: n coordinates, n
   rates, the states of the law (integrals, its own states, an observer's estimate) and of bristles,
   and the energies [J] that the actuators gave, and damping and friction took. Its rate is k = [v;
   a; z'; w'; powers]. A method makes one step from y0, whose rate is
   k[0], to y1, whose rate is k[last]; everything else is the driver's.

   LANES arms with the same functions and events are integrated at once where it is defined: a
   `real` then holds one number of each of them, and so do all arguments and results of functions.
   They share times and steps; one that fails is left out, and the others go on. Without it a `real`
   is a double and all methods are there. */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef LANES
/* aligned as the caller's arrays of double are, in whose place it stands */
typedef double real __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
#else
#define LANES 1
typedef double real;
#endif

typedef long long casadi_int;
typedef int (*casadi_function)(const real **, real **, casadi_int *, real *, int);

typedef struct {
  casadi_function call; /* NULL where the method does not need it */
  casadi_int n_arg, n_res, n_iw, n_w, n_in;
  const real *numbers;   /* of arm or law, the last input; NULL where there are none */
} function_t;

typedef struct {
  double time;
  casadi_int kind;  /* 0 phase, 1 sample the law, 2 apply a sampled torque */
  casadi_int index; /* of the sample */
  double phase;     /* from here on */
} event_t;

typedef struct {
  casadi_int method;             /* 0 esdirk, 1 explicit, 2 midpoint, 3 rk4 */
  casadi_int n, m, n_z, held;    /* coordinates, joints, states of the law, law sampled and held */
  casadi_int n_hat;              /* coordinates of an observer: the last 2 n_hat of z are q^, v^ */
  casadi_int n_moving;           /* other states of the law that move between events, before them */
  casadi_int n_lines;            /* elastic lines */
  casadi_int n_b;                /* bristles of friction, with esdirk only */
  casadi_int n_s;                /* joints that slip and stick by events, with esdirk only */
  casadi_int n_noise, noise_row; /* noisy readings, and the first of their rows in z */
  function_t balance;            /* (q, v, a, tau) -> M a + n - B tau */
  function_t forward;            /* (q, v, tau) -> a */
  function_t momentum;           /* (q, v, tau) -> dT/dv, d(T - V)/dq - D v - f + B tau */
  function_t terms;              /* (q, v) -> M, D + df/dv, K */
  function_t power;              /* (q, v, tau) -> of the actuators, of dampers and friction */
  function_t bristles;           /* (v, w, c) -> w + c w', w', force, its slope, power, energy */
  function_t sliding;            /* (v, way) -> force of what slips, its slope; static friction */
  function_t deflections;        /* q -> deflections, slopes at the ends of the lines */
  function_t reference;          /* (t, phase) -> s, q_d, v_d, a_d */
  function_t law;                /* (s, z, q_d, v_d, a_d, q, v) -> tau, z' */
  function_t law_jacobian;       /* likewise -> dF/dq, dF/dv of the forces F at the drives, and, of
                                    a continuous law with states, dtau/dz, dF/dz, dz'/d(q, v, z) */
  double rtol, atol_q, atol_v;
  double fixed_step;             /* of the methods without error control */
  double sample_time;
  double steepest;               /* slope beyond which a line leaves the theory */
  casadi_int max_steps, n_events, n_samples;
  const event_t *events;         /* the last one ends the run */
  const double *sample_times;    /* (n_samples,) ascending, within the run */
  const real *limit;             /* (m,) largest torques, to count saturation */
  const casadi_int *drives;      /* (m,) coordinate on which each torque acts */
  const casadi_int *sticking;    /* (n_s,) coordinates of the joints that slip and stick */
  const real *lowest, *highest;  /* (n,) coordinates between which the model holds */
  const real *noise;             /* (n_noise, samples of the law) */
} problem_t;

typedef struct {
  real *q, *v, *a;               /* (n, n_samples) by columns */
  real *tau;                     /* (m, n_samples) */
  real *z;                       /* (n_z, n_samples) */
  real *supplied, *dissipated;   /* (n_samples,) */
  real *stored;                  /* (n_samples,) in bristles */
  real *saturated;               /* (m,) seconds at the torque limit */
  casadi_int *status;            /* (LANES,) of the enum */
  double *time;                  /* (LANES,) where the run ended or failed */
  casadi_int *index;             /* (LANES,) of the coordinate or line that left its range */
  casadi_int steps, rejected, evaluations;
} result_t;

enum { OK = 0, NO_MEMORY = 1, STEP_TOO_SMALL = 2, TOO_MANY_STEPS = 3, NOT_FINITE = 4,
       SINGULAR = 5, NO_START = 6, OUT_OF_RANGE = 7, TOO_STEEP = 8, NO_CONVERGENCE = 9 };

#define MOST_RATES 16 /* stages of the longest method, with those of its dense output */
#define DENSE 7       /* coefficients of the dense output of that method */

typedef struct state state_t;

typedef struct {
  int rates; /* how many of the k are used */
  int last;  /* which of them belongs to the end of the step */
  int order; /* the error of a step falls as h^order; 0 for a fixed step */
  /* A smooth stretch begins: find the rate k[0] of y0. Returns a status. */
  int (*begin)(state_t *s, double t);
  /* From y0 to y1; returns the `worst` error in units of the tolerance, negative where there is no
     y1. */
  double (*step)(state_t *s, double t, double h);
  /* Called once in a step that contains samples, before the first; may be NULL. */
  void (*prepare)(state_t *s, double t, double h);
  /* State y at the share x of a step, 0 <= x <= 1. */
  void (*interpolate)(state_t *s, double h, double x, real *y);
} method_t;

struct state {
  const problem_t *p;
  const method_t *method;
  result_t *r;
  casadi_int n, m, n_z, n_b, n_s, size;
  const real **arg;   /* arguments, results and work arrays of CasADi functions */
  real **res;
  casadi_int *iw;
  real *w;
  real *y0, *y1, *k[MOST_RATES], *dense[DENSE];
  real *y_star, *error;                /* (size,) */
  real *tau, *held_tau, *samples;      /* torques now, held, and sampled */
  real *s_ref, *z_rate, *slopes;       /* s, q_d, v_d, a_d; rates of z; of the lines */
  real *M, *D, *K, *N;                 /* iteration matrix N and its parts, for implicit methods */
  real *Fq, *Fv, *Fz, *tau_z;          /* (m, .) derivatives of the law's forces F and commands */
  real *gq, *gv, *gz;                  /* (n_z, .) and of the rates g of its states */
  real *E, *X;                         /* (n_z, n_z), (n_z, n): see newton.c */
  real *z_delta;                       /* (n_z,) Newton step of z' */
  real *f, *delta, *p0;                /* (n,) residual, Newton step, momentum */
  real *push, *steep;                  /* (n,) force of bristles and its slope */
  real *bent, *bent_rate;              /* (n_b,) states of bristles and their rates */
  real *way, *holding, *held_by;       /* (n_s,) 0 sticks; force that holds, and its limit */
  real *slide, *slide_slope;           /* (n,) force of what slips, and its slope */
  real *W, *column;                    /* (n_s, n_s), (n,) of the problem of what sticks */
  real taken[2], share;                /* power and energy of bristles; c of their states */
  casadi_int *pivot, *z_pivot;
  real now, phase;                     /* inputs of the reference */
  double t;                            /* of the last accepted state, for failures */
  double ratio;                        /* of Newton corrections, the largest in the step so far */
  real off;                            /* error of the last step in units of the tolerance */
  int released;                        /* no joint is held, for the problem of what sticks */
  int fresh;                           /* M, D, K and the law's derivatives are those of y0 */
};
