/* Time of one evaluation of a function of (q, v, x), named FUNCTION when this is compiled.  The
   result of each evaluation moves the input of the next, so that no compiler can take the
   evaluation out of the loop. */
#include <stdlib.h>
#include <time.h>
typedef long long casadi_int;
#define JOIN(a, b) a##b
#define WORK(name) JOIN(name, _work)
int FUNCTION(const double** arg, double** res, casadi_int* iw, double* w, int mem);
int WORK(FUNCTION)(casadi_int* args, casadi_int* ress, casadi_int* iws, casadi_int* ws);

double seconds_per_call(double* q, double* v, double* x, double* result, int n, long count) {
  casadi_int args, ress, iws, ws;
  WORK(FUNCTION)(&args, &ress, &iws, &ws);
  const double** arg = calloc(args + 3, sizeof(double*));
  double** res = calloc(ress + 1, sizeof(double*));
  casadi_int* iw = malloc((iws + 1) * sizeof(casadi_int));
  double* w = malloc((ws + 1) * sizeof(double));
  struct timespec start, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (long k = 0; k < count; ++k) {
    arg[0] = q, arg[1] = v, arg[2] = x, res[0] = result;
    FUNCTION(arg, res, iw, w, 0);
    for (int i = 0; i < n; ++i) {
      q[i] += 1e-14 * result[i];
      v[i] -= 1e-14 * result[i];
    }
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  free(arg), free(res), free(iw), free(w);
  return ((end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec)) / count;
}
