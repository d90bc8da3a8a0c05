/* A page is the answer of one call to a long listing, and says where the next page begins. */
#ifndef BOURSE_EXCHANGE_VIEW_PAGES_H
#define BOURSE_EXCHANGE_VIEW_PAGES_H

/* A call takes at most so many steps, about a millisecond of a processor's time. A look at a thing
 * is one step; each predicate of a requirement on each attribute is one more. */
enum { EXCHANGE_LISTING_STEPS = 1 << 16 };

enum exchange_listing {
    LISTING_END,      /* no page follows */
    LISTING_MORE,     /* go on from *ret_next */
    LISTING_NO_PLACE, /* no listing gave this `from` */
    LISTING_BAD_NEEDS /* the requirement is not well formed */
};

#endif
