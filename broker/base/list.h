/* Intrusive circular doubly-linked list. Not thread-safe; a node is on at most one list. */
#pragma once

#include <stdbool.h>

#include "base/util.h"

struct list {
        struct list *prev, *next;
};

#define LIST_INIT(name)                                                                                      \
        {                                                                                                    \
                &(name), &(name)                                                                             \
        }

static inline void list_init(struct list *l)
{
        l->prev = l->next = l;
}

static inline bool list_empty(const struct list *l)
{
        return l->next == l;
}

static inline void list_insert_after_(struct list *pos, struct list *node)
{
        node->prev = pos;
        node->next = pos->next;
        pos->next->prev = node;
        pos->next = node;
}

static inline void list_push_back(struct list *l, struct list *node)
{
        list_insert_after_(l->prev, node);
}

static inline void list_push_front(struct list *l, struct list *node)
{
        list_insert_after_(l, node);
}

/* Unlink @node and leave it initialised, so that removing it twice is harmless. */
static inline void list_remove(struct list *node)
{
        node->prev->next = node->next;
        node->next->prev = node->prev;
        list_init(node);
}

/* Is @node on some list? It must have been list_init()ed once. */
static inline bool list_linked(const struct list *node)
{
        return node->next != node;
}

/* Move all of @from to the end of @to. */
static inline void list_splice_back(struct list *to, struct list *from)
{
        if (list_empty(from))
                return;
        from->next->prev = to->prev;
        to->prev->next = from->next;
        from->prev->next = to;
        to->prev = from->prev;
        list_init(from);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_for_each(it, l)          for (struct list *it = (l)->next; it != (l); it = it->next)
#define list_for_each_safe(it, tmp, l)                                                                       \
        for (struct list *it = (l)->next, *tmp = it->next; it != (l); it = tmp, tmp = it->next)
