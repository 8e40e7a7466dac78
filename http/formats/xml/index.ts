/** XML documents, and their JSON form. */
export { DocumentParser, documentTooLarge } from "./document-parser.ts"
export { parseFragment, parseText, rowParser, XmlRejected } from "./document.ts"
export { type AttributesInput, childOf, childrenOf, childText, type Element, element,
  escapeAttribute, failure, isName, isoTime, isText, listElement, optionalElement, printable,
  type Result, success, textOf, withoutForbidden, writeDocument, writeElement, xmlDeclaration,
  type XmlFault } from "./element.ts"
export { brokenJson, type JsonDocument, toJson } from "./json.ts"
export { isUri, type NotificationDocument, notificationElement, type ParsedInlineContent,
  type RuleFault, storedFragment } from "./notification-document.ts"
export { clickElement, describingElements, describingFields, type FieldFault, priorityElement,
  tagsElement, tagsIn } from "./notification-fields.ts"
