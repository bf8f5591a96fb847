/* Bodies of the admin API, checked member by member. Pure; any thread. Internal to the controller client. */
#pragma once

#include <jansson.h>

#include "controller_client.h"

/* All return 0 or -EBADMSG, and write *ret only on success. */
int api_parse_drain(const char *body, size_t len, int32_t broker,
                    struct blocked_partition blocked[BLOCKED_MAX], struct drain_answer *ret) must_check;
int api_parse_broker(const char *body, size_t len, struct broker_answer *ret) must_check;
int api_parse_cluster(const char *body, size_t len, struct cluster_answer *ret) must_check;
/* What a refusal says: its "error" code and a sentence; both may come out empty. */
void api_parse_refusal(const char *body, size_t len, char code[64], char message[256]);
/* Body of a PUT, or NULL on out of memory; free() it. */
char *api_format_ask(const struct drain_ask *ask);

/* Copy as much of @text as fits @size bytes without cutting a character. What is not UTF-8 becomes '?',
 * control characters become spaces. */
void text_copy(char *out, size_t size, const char *text);
/* Who holds the slot: of a refusal's body, and the member `slot` of an answer. Not held when it does not say.
 */
void api_parse_holder(const char *body, size_t len, struct slot_info *ret);
/* The partitions that a refusal "unsafe" waits for; none when it does not say. */
void api_parse_unsafe(const char *body, size_t len, struct blocked_partition blocked[BLOCKED_MAX],
                      size_t *ret_n, int32_t *ret_total, int32_t *ret_remaining);
int api_parse_slot(const json_t *o, struct slot_info *ret) must_check; /* -EBADMSG: it is no such member */
