// The old place of <perdix/papers/elimda.h>, for one release.
#pragma once

#pragma message("<perdix/elimda.h> is deprecated: include <perdix/papers/elimda.h>")

#include <perdix/papers/elimda.h>
