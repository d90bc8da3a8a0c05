/* base/list.h - an intrusive, circular, doubly linked list.
 *
 * A `struct list_link` inside an element is its place in one list. The head is a link too; an empty
 * head points to itself. All operations are O(1). Pure.
 *
 * Links may alias: at -O2 GCC 12 takes a head that a loop reads both as a member of what owns it
 * and through a pointer to it for one that no other store in that loop changes, and reads its
 * `next` once for all; the first element was then put before itself, out of its list. (Loop
 * invariant motion by the types of access paths.) */
#ifndef BOURSE_BASE_LIST_H
#define BOURSE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct __attribute__((may_alias)) list_link {
    struct list_link *previous;
    struct list_link *next;
};

/* The element that contains `link` as its member `member`. */
#define LIST_ELEMENT(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void list_init(struct list_link *head)
{
    head->previous = head;
    head->next = head;
}

static inline bool list_empty(const struct list_link *head)
{
    return head->next == head;
}

static inline void list_insert_before(struct list_link *position, struct list_link *link)
{
    link->previous = position->previous;
    link->next = position;
    position->previous->next = link;
    position->previous = link;
}

static inline void list_append(struct list_link *head, struct list_link *link)
{
    list_insert_before(head, link);
}

/* Moves all of `from` behind what is in `to`; `from` is empty then. */
static inline void list_append_all(struct list_link *to, struct list_link *from)
{
    if (!list_empty(from)) {
        from->next->previous = to->previous;
        to->previous->next = from->next;
        from->previous->next = to;
        to->previous = from->previous;
        list_init(from);
    }
}

/* Leaves `link` pointing to itself, so that removing it twice is harmless. */
static inline void list_remove(struct list_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

#endif
