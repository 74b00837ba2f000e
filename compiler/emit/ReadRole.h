//===- ReadRole.h - one role of a dist module -----------------------------===//
#pragma once

#include "dialects/dist/LocalTypes.h"

namespace monarch {

/// `mistake` stays empty unless the role is not in local form.
Role readRole(dist::RoleOp op, std::string &mistake);

} // namespace monarch
