/* base/list.h defines an intrusive, circular, doubly linked list.
 *
 * A `struct list_link` inside an element is the element's place in one list. The head is a link
 * too; an empty head points to itself. All operations are O(1).
 *
 * The attribute may_alias works around GCC 12 at -O2. Some loops read a head both as a member of
 * its owner and through a pointer to the head. GCC assumes that no store through the pointer
 * changes the member, and reads its `next` only once. The first element was then inserted before
 * itself and so left its list. (The pass is loop invariant motion by the types of access paths.) */
#ifndef BOURSE_BASE_LIST_H
#define BOURSE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct __attribute__((may_alias)) list_link {
    struct list_link *previous;
    struct list_link *next;
};

/* Returns the element that contains `link` as its member `member`. */
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

/* Moves all elements of `from` to the end of `to`; `from` is empty then. */
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

/* Removes `link` and lets it point to itself, so that a second removal is harmless. */
static inline void list_remove(struct list_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    list_init(link);
}

#endif
