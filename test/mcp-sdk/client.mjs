// The official TypeScript client against a real Reins: lists exactly six tools and
// signs in at the demo's shop, as an agent would.
//
//   node client.mjs SITE EMAIL PASSWORD COMMAND [ARG...]   over stdio
//   node client.mjs SITE EMAIL PASSWORD URL TOKEN          over HTTP
//
// Ends with 0, or with a sentence on stderr and 1.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [site, email, password, command, ...args] = process.argv.slice(2);
const transport = command.startsWith('http://')
  ? new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers: { Authorization: `Bearer ${args[0]}` } } })
  : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });
const client = new Client({ name: 'typescript', version: '1.0.0' });

async function call(tool, args = {}) {
  const result = await client.callTool({ name: 'browser_' + tool, arguments: args });
  const text = result.content.filter(c => c.type === 'text').map(c => c.text).join('\n');
  assert.ok(!result.isError, `${tool}: ${text}`);
  return { text, result };
}

function ref(text, role, name) {
  const line = text.split('\n').find(l => l.includes(`- ${role} "${name}"`));
  assert.ok(line, `no ${role} "${name}" in:\n${text}`);
  return line.match(/\[ref=([^\]]+)\]/)[1];
}

try {
  await client.connect(transport);
  assert.ok(client.getInstructions().length > 50);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(t => t.name).sort(), [
    'browser_click', 'browser_fill', 'browser_navigate', 'browser_press', 'browser_screenshot', 'browser_snapshot',
  ]);

  const { text: page, result } = await call('navigate', { url: site });
  assert.equal(result.structuredContent.page.title, 'Sign in · Harbour Supply');
  await call('fill', { ref: ref(page, 'textbox', 'Email'), value: email });
  await call('fill', { ref: ref(page, 'textbox', 'Password'), value: password });
  const { text: goods } = await call('click', { ref: ref(page, 'button', 'Sign in'), snapshot: true });
  assert.match(goods, /heading "Goods"/);

  const { result: picture } = await call('screenshot');
  assert.ok(picture.content.some(c => c.type === 'image' && c.data.length > 1000), 'no picture');
  const link = picture.content.find(c => c.type === 'resource_link');
  const stored = await client.readResource({ uri: link.uri });
  assert.ok(stored.contents[0].blob.length > 1000, 'no stored picture');

  const stale = await client.callTool({ name: 'browser_click', arguments: { ref: ref(page, 'button', 'Sign in') } });
  assert.ok(stale.isError && stale.content[0].text.startsWith('stale_ref: '), JSON.stringify(stale));
  assert.equal(stale.structuredContent.error.recovery, 'snapshot');
  const bad = await client.callTool({ name: 'browser_click', arguments: {} });
  assert.ok(bad.isError && bad.content[0].text.startsWith('invalid_input: '), JSON.stringify(bad));
} catch (error) {
  process.exitCode = 1;
  console.error(error.message);
} finally {
  if (transport.sessionId) await transport.terminateSession();
  await client.close();
}
