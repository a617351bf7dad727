// An authorization server that says who it is in its answers, registers clients by itself and signs tokens for one
// resource, with pages to sign in and to agree; and an MCP server behind it. Ports: MCP, authorization.

import Provider from 'oidc-provider';
import { guard } from './guarded.mjs';

const [mcp, authorization] = process.argv.slice(2).map(Number);
const issuer = `http://localhost:${authorization}`;
const scopes = ['mcp:read'];

const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', ...scopes],
  pkce: { required: () => true },
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => false,
      getResourceServerInfo: (_context, resource) => ({
        scope: scopes.join(' '),
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 600,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});
provider.listen(authorization, '127.0.0.1');
guard({ port: mcp, issuer, keys: `${issuer}/jwks`, scopes });
