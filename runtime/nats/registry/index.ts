/** The registry in a JetStream key-value bucket. */
export { natsRegistry } from "./registry.ts"
