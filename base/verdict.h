/* base/verdict.h lists the verdicts that a check may give on a result.
 *
 * The numbers travel on the wire and never change (docs/protocol.md, section 5). */
#ifndef BOURSE_BASE_VERDICT_H
#define BOURSE_BASE_VERDICT_H

enum result_verdict {
    VERDICT_NONE = 0, /* no check, or no check that came to a verdict */
    VERDICT_ACCEPT = 1,
    VERDICT_REJECT = 2,
    VERDICT_UNSURE = 3, /* neither: nobody is accused */
};

#endif
