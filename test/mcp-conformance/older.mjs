// The conformance suite imports fs.globSync, which Node has since version 22, for a
// command that is not used here, and takes the global File, which it has since 20.
// With `node --import ./older.mjs` it loads on 18 and 20 too.
import { File } from 'node:buffer';
import { register } from 'node:module';

globalThis.File ??= File;

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
