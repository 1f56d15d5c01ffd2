// The conformance suite imports fs.globSync, which Node has since version 22, for a
// command that is not used here. With `node --import ./node20.mjs` it loads on 20 too.
import { register } from 'node:module';

const fs = 'data:text/javascript,' + encodeURIComponent(`
export * from 'node:fs';
export { default } from 'node:fs';
export function globSync() { throw new Error('fs.globSync is not here'); }
`);
register('data:text/javascript,' + encodeURIComponent(`
export function resolve(specifier, context, next) {
  if (specifier === 'fs' && context.parentURL?.includes('/conformance/dist/')) {
    return { url: ${JSON.stringify(fs)}, shortCircuit: true };
  }
  return next(specifier, context);
}
`));
