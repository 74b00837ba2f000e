// See gloo/context.h of this folder.
#pragma once
#include <gloo/context.h>
