// An authorization server known by OpenID Connect discovery alone, which registers nobody; and an MCP server behind it.
// Ports: MCP, authorization.

import { OAuth2Server } from 'oauth2-mock-server';
import { guard } from './guarded.mjs';

const [mcp, authorization] = process.argv.slice(2).map(Number);
const server = new OAuth2Server();
await server.issuer.keys.generate('RS256');
await server.start(authorization, '127.0.0.1');
server.service.on('beforeTokenSigning', (token, request) => {
  token.payload.aud = request.body.resource;
});
const issuer = server.issuer.url;
guard({ port: mcp, issuer, keys: `${issuer}/jwks`, scopes: ['mcp:read'] });
