/* eslint-disable no-undef -- jest loads it as a module of node's own system */
/** Resolves `import('./x.js')` to x.ts: dynamic imports of sources name the file that the compiler makes of them. */
module.exports = (path, options) => {
  try {
    return options.defaultResolver(path, options);
  } catch (error) {
    if (!/^\.{1,2}\/.*\.js$/.test(path)) throw error;
    return options.defaultResolver(path.replace(/\.js$/, '.ts'), options);
  }
};
