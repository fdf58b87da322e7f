// The old place of <perdix/papers/nbtree.h>, for one release.
#pragma once

#pragma message("<perdix/nbtree.h> is deprecated: include <perdix/papers/nbtree.h>")

#include <perdix/papers/nbtree.h>
