#include "dif/engine/fire_context.h"

namespace ringside::dif {

namespace {
thread_local bool firing = false;
}

FireScope::FireScope() : outer_(firing) {
  firing = true;
}
FireScope::~FireScope() {
  firing = outer_;
}

bool in_fire_context() {
  return firing;
}

}  // namespace ringside::dif
