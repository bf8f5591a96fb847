#include "base/config.h"
