/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef RDX_INSTRUMENT_H
#define RDX_INSTRUMENT_H

#include "pub_tool_basics.h"
#include "pub_tool_tooliface.h"

/* Whether what VEX puts on the stack for itself is shown, as lackey does. */
extern Bool instrument_spills;

IRSB* instrument(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout,
                 const VexGuestExtents* extents, const VexArchInfo* host,
                 IRType guest_word, IRType host_word);

#endif
