/** XML documents, and their JSON form: the only importer of saxes and xml-js. */
export { DocumentParser } from "./document-parser.ts"
export { parseFragment, parseText } from "./document.ts"
export { type AttributesInput, childOf, childrenOf, type Element, element, escapeAttribute, failure,
  isName, isText, type Result, success, textOf, writeDocument, writeElement, xmlDeclaration,
  type XmlFault } from "./element.ts"
export { XmlRejected } from "./guarded-parser.ts"
export { type JsonDocument, toJson } from "./json.ts"
export { type FragmentChanges, isUri, type NotificationDocument, notificationElement,
  type ParsedInlineContent, type RuleFault, storedFragment } from "./notification-document.ts"
export { rowParser } from "./row-parser.ts"
