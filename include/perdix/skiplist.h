// The old place of <perdix/papers/skiplist.h>, for one release.
#pragma once

#pragma message("<perdix/skiplist.h> is deprecated: include <perdix/papers/skiplist.h>")

#include <perdix/papers/skiplist.h>
