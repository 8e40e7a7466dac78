/** Content resources and their receipts (protocol §1.1). */
export { askContent, content, type ContentDependencies, contentKind } from "./actor.ts"
export { ContentAccess, ContentBody, ContentMessage, type ContentReply, ContentState,
  type ContentSummary, type ContentView, decodeReceipt } from "./protocol.ts"
