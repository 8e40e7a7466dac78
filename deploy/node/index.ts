/** One node, put together. */
export { loggingLayer } from "./logging.ts"
export { stopped } from "./serve.ts"
