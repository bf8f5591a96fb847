#include "base/parse.h"
