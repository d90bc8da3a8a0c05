/* base/cursor.h reads and writes bytes field by field, and never passes the end.
 *
 * Our own formats (envelope, journal record, snapshot, leaf) are little endian and go through here.
 * A struct is never copied to the wire. Both cursors are sticky: the first field that does not fit
 * sets `failed`. From then on reads yield zeros and writes are dropped. A codec therefore checks
 * once, at the end.
 *
 *     struct reader in = reader_over(bytes, length);
 *     uint32_t count = reader_u32(&in);
 *     if (!reader_finished(&in)) return CODEC_MALFORMED;   all there, and nothing left over */
#ifndef BOURSE_BASE_CURSOR_H
#define BOURSE_BASE_CURSOR_H

#include "base/reader.h"
#include "base/writer.h"

#endif
