// Takes the place of the C header in the sources of llama.cpp's chat layer: a failed assertion is an exception, not the end of
// the process. Has no include guard, like the original.
#include "guard.h"

#undef assert
#define assert(condition) ((condition) ? (void) 0 : hob::failed(#condition))
