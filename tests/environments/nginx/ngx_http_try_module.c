/* SPDX-License-Identifier: MIT */
/* ngx_http_try_module.c - a handler that each worker calls for a request; the master has used the library before it forked them. */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "plug.h"

static ngx_int_t answer(ngx_http_request_t *r)
{
	static u_char good[] = "result 0\n", bad[] = "result bad\n";
	ngx_str_t type = ngx_string("text/plain");
	ngx_http_complex_value_t text;

	ngx_memzero(&text, sizeof(text));
	text.value.data = quiesce_try() ? bad : good;
	text.value.len = ngx_strlen(text.value.data);
	return ngx_http_send_response(r, NGX_HTTP_OK, &type, &text);
}

static char *set_handler(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	ngx_http_core_loc_conf_t *location = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

	(void)command;
	(void)conf;
	if (quiesce_try())
		return NGX_CONF_ERROR;
	location->handler = answer;
	return NGX_CONF_OK;
}

static ngx_command_t commands[] = {
	{ ngx_string("try_quiesce"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, set_handler, 0, 0, NULL },
	ngx_null_command
};
static ngx_http_module_t context;

ngx_module_t ngx_http_try_module = {
	NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NGX_MODULE_V1_PADDING
};
