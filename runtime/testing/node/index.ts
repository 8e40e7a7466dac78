/** One node for tests, in virtual time. */
export { startTestNode, type TestNode, type TestNodeOptions } from "./test-node.ts"
