// An MCP server over streamable HTTP for whoever holds a token that one authorization server signed for it.

import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const METADATA = '/.well-known/oauth-protected-resource/mcp';

// `keys` is where the issuer publishes its own; the tool `whoami` answers what the token says.
export function guard({ port, issuer, keys, scopes }) {
  const origin = `http://localhost:${port}`;
  const resource = `${origin}/mcp`;
  const keySet = createRemoteJWKSet(new URL(keys));
  const challenge = `Bearer resource_metadata="${origin}${METADATA}", scope="${scopes.join(' ')}"`;

  async function claims(request) {
    const token = request.headers.authorization?.match(/^Bearer (.+)$/)?.[1];
    if (!token) return undefined;
    const verified = await jwtVerify(token, keySet, { issuer, audience: resource }).catch(() => undefined);
    return verified?.payload;
  }

  const http = createServer(async (request, response) => {
    const answer = (status, body, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    if (request.url === METADATA) {
      return answer(200, { resource, authorization_servers: [issuer], scopes_supported: scopes });
    }
    if (request.url !== '/mcp') return answer(404, {});
    const payload = await claims(request);
    if (!payload) return answer(401, { error: 'invalid_token' }, { 'www-authenticate': challenge });
    if (request.method !== 'POST') return answer(405, {});
    const server = new McpServer({ name: 'guarded', version: '1.0.0' });
    server.registerTool('whoami', { description: 'Answers what the token says' }, async () => ({
      content: [{ type: 'text', text: JSON.stringify(payload) }],
    }));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  });
  http.listen(port, '127.0.0.1');
}
