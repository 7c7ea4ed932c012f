/* A CasADi function at many points: what is computed of a run's signals afterwards. */

typedef struct {
  casadi_int n_in, n_out;
  const casadi_int *rows_in, *rows_out; /* entries of every argument and result */
  const double **in;                    /* (rows, points) by columns */
  double **out;
} table_t;

int flexctl_columns(const function_t *f, const table_t *table, casadi_int points) {
  const double **arg = calloc(f->n_arg + table->n_in, sizeof *arg);
  double **res = calloc(f->n_res + table->n_out, sizeof *res);
  casadi_int *iw = calloc(f->n_iw + 1, sizeof *iw);
  double *w = calloc(f->n_w + 1, sizeof *w);
  const int status = arg && res && iw && w ? OK : NO_MEMORY;
  for (casadi_int k = 0; k < points && !status; k++) {
    for (casadi_int i = 0; i < table->n_in; i++) arg[i] = table->in[i] + k * table->rows_in[i];
    for (casadi_int i = 0; i < table->n_out; i++) res[i] = table->out[i] + k * table->rows_out[i];
    f->call(arg, res, iw, w, 0);
  }
  free(arg); free(res); free(iw); free(w);
  return status;
}
