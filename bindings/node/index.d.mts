// The types of `index.mjs`, which exports the same names.
import * as transcript from './index.js';

export * from './index.js';
export default transcript;
