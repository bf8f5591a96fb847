/* What every unit test of this folder includes: cmocka with the headers it needs before it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/util.h"

/* A directory of its own for each test, removed with everything in it; *state is its path. */
int tmpdir_setup(void **state);
int tmpdir_teardown(void **state);
/* "<dir>/<name>" in memory that lives until the next call. */
const char *tmpdir_path(void **state, const char *name);
