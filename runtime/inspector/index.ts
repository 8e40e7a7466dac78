/** The inspector: a page and a JSON interface that show the actors of a node, for development. */
export { type InspectorOptions, InspectorStartFailed, type NodeWithInspector,
  startInspectedNode } from "./inspected-node.ts"
