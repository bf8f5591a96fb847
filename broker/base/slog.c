#include "base/slog.h"
