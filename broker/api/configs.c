/* DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44).
 *
 * Clients send the changes of a topic to any broker, and those of a broker to that broker; none of them looks
 * for the controller. So whoever gets a request passes it on to the controller, which alone writes. */
#include "api/request.h"

#include "controller/controller.h"
#include "wire/alter_configs.h"
#include "wire/describe_configs.h"
#include "wire/incremental_alter_configs.h"

static void on_described(const struct describe_configs_response *res, void *userdata)
{
        api_reply(userdata, res);
}

void api_handle_describe_configs(struct api_request *r)
{
        const struct api_env *e = &r->api->env;

        e->describe_configs(r->body, &r->arena, on_described, r, e->userdata);
}

/* --- changes --- */

struct alter {
        struct api_request *r;
        const struct incremental_alter_configs_request *req;
        bool replace;
};

/* AlterConfigs is IncrementalAlterConfigs with sets only, and all that is not named goes. */
static const struct incremental_alter_configs_request *as_incremental(struct arena *a,
                                                                      const struct alter_configs_request *in)
{
        struct incremental_alter_configs_request *out = arena_alloc(a, 1, sizeof(*out));
        size_t n = (size_t)MAX(in->resources.n, 0);

        if (!out)
                return NULL;
        out->validate_only = in->validate_only;
        out->resources.n = (int32_t)n;
        out->resources.items = arena_alloc(a, n + 1, sizeof(*out->resources.items));
        for (size_t i = 0; out->resources.items && i < n; i++) {
                const struct alter_configs_request_resource *from = &in->resources.items[i];
                struct incremental_alter_configs_request_resource *to = &out->resources.items[i];
                size_t k = (size_t)MAX(from->configs.n, 0);

                to->resource_type = from->resource_type;
                to->resource_name = from->resource_name;
                to->configs.n = (int32_t)k;
                to->configs.items = arena_alloc(a, k + 1, sizeof(*to->configs.items));
                if (!to->configs.items)
                        return NULL;
                for (size_t j = 0; j < k; j++) {
                        to->configs.items[j].name = from->configs.items[j].name;
                        to->configs.items[j].value = from->configs.items[j].value;
                }
        }
        return out->resources.items ? out : NULL;
}

static const struct alter_configs_response *as_alter(struct arena *a,
                                                     const struct incremental_alter_configs_response *in)
{
        struct alter_configs_response *out = arena_alloc(a, 1, sizeof(*out));
        size_t n = (size_t)MAX(in->responses.n, 0);

        if (!out)
                return NULL;
        out->responses.n = (int32_t)n;
        out->responses.items = arena_alloc(a, n + 1, sizeof(*out->responses.items));
        for (size_t i = 0; out->responses.items && i < n; i++)
                out->responses.items[i] = (struct alter_configs_response_response){
                        .error_code = in->responses.items[i].error_code,
                        .error_message = in->responses.items[i].error_message,
                        .resource_type = in->responses.items[i].resource_type,
                        .resource_name = in->responses.items[i].resource_name,
                };
        return out->responses.items ? out : NULL;
}

static bool is_refused(const struct incremental_alter_configs_response *res)
{
        for (int32_t i = 0; i < res->responses.n; i++)
                if (res->responses.items[i].error_code == KAFKA_NOT_CONTROLLER)
                        return true;
        return false;
}

static bool alter_is_refused(const void *response)
{
        const struct alter_configs_response *res = response;

        for (int32_t i = 0; i < res->responses.n; i++)
                if (res->responses.items[i].error_code == KAFKA_NOT_CONTROLLER)
                        return true;
        return false;
}

static bool incremental_is_refused(const void *response)
{
        return is_refused(response);
}

static void answer(struct alter *x, const struct incremental_alter_configs_response *res)
{
        if (x->replace)
                api_reply(x->r, as_alter(&x->r->arena, res));
        else
                api_reply(x->r, res);
}

static void answer_nobody(struct alter *x)
{
        struct incremental_alter_configs_response res = {0};
        size_t n = (size_t)MAX(x->req->resources.n, 0);

        res.responses.items = arena_alloc(&x->r->arena, n + 1, sizeof(*res.responses.items));
        if (!res.responses.items) {
                api_abort(x->r);
                return;
        }
        res.responses.n = (int32_t)n;
        for (size_t i = 0; i < n; i++)
                res.responses.items[i] = (struct incremental_alter_configs_response_response){
                        .error_code = KAFKA_NOT_CONTROLLER,
                        .error_message = wire_str("no controller answered; ask again"),
                        .resource_type = x->req->resources.items[i].resource_type,
                        .resource_name = x->req->resources.items[i].resource_name,
                };
        answer(x, &res);
}

static void on_asked(const void *response, void *userdata)
{
        struct alter *x = userdata;

        if (response)
                api_reply(x->r, response);
        else
                answer_nobody(x);
}

/* What another broker has passed on ends here: two that take each other for the controller would go on for
 * ever. */
static bool is_passed_on(const struct api_request *r)
{
        return wire_str_equal(r->header.client_id, API_FORWARD_CLIENT_ID);
}

/* What was done of it already is done again, which changes nothing. */
static void on_altered(const struct incremental_alter_configs_response *res, void *userdata)
{
        struct alter *x = userdata;
        const struct api_env *e = &x->r->api->env;

        if (is_refused(res) && !is_passed_on(x->r))
                e->ask_controller(x->r->header.api_key, x->r->desc->serve_max, x->r->body,
                                  x->replace ? alter_is_refused : incremental_is_refused, on_asked, x,
                                  e->userdata);
        else
                answer(x, res);
}

static void alter(struct api_request *r, const struct incremental_alter_configs_request *req, bool replace)
{
        struct alter *x = arena_alloc(&r->arena, 1, sizeof(*x));

        if (!req || !x) {
                api_abort(r);
                return;
        }
        *x = (struct alter){.r = r, .req = req, .replace = replace};
        controller_alter_configs(r->api->env.controller, req, replace, on_altered, x);
}

void api_handle_alter_configs(struct api_request *r)
{
        alter(r, as_incremental(&r->arena, r->body), true);
}

void api_handle_incremental_alter_configs(struct api_request *r)
{
        alter(r, r->body, false);
}
