/* Requests of administration tools for the active controller: CreatePartitions (37), ElectLeaders (43),
 * AlterPartitionReassignments (45), ListPartitionReassignments (46). */
#include "api/request.h"

#include "controller/controller.h"
#include "wire/alter_partition_reassignments.h"
#include "wire/create_partitions.h"
#include "wire/elect_leaders.h"
#include "wire/list_partition_reassignments.h"

static void on_partitions(const struct create_partitions_response *res, void *userdata)
{
        api_reply(userdata, res);
}

void api_handle_create_partitions(struct api_request *r)
{
        controller_create_partitions(r->api->env.controller, r->body, on_partitions, r);
}

static void on_elected(const struct elect_leaders_response *res, void *userdata)
{
        api_reply(userdata, res);
}

void api_handle_elect_leaders(struct api_request *r)
{
        controller_elect_leaders(r->api->env.controller, r->body, on_elected, r);
}

static void on_reassigned(const struct alter_partition_reassignments_response *res, void *userdata)
{
        api_reply(userdata, res);
}

void api_handle_alter_reassignments(struct api_request *r)
{
        controller_alter_reassignments(r->api->env.controller, r->body, on_reassigned, r);
}

static void on_listed(const struct list_partition_reassignments_response *res, void *userdata)
{
        api_reply(userdata, res);
}

void api_handle_list_reassignments(struct api_request *r)
{
        controller_list_reassignments(r->api->env.controller, r->body, on_listed, r);
}
