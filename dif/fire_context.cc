#include "dif/fire_context.h"

namespace ringside::dif {

namespace {
thread_local bool firing = false;
}

FireScope::FireScope() {
  firing = true;
}
FireScope::~FireScope() {
  firing = false;
}

bool in_fire_context() {
  return firing;
}

}  // namespace ringside::dif
