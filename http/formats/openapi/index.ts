/** The OpenAPI document from what each resource says of its operations. */
export { type DescribedRoute, type DocumentPart, makeDocument } from "./document.ts"
export { buttonRequestBody, cacheHeaders, documentRequestBody, emptyResponse, eventContent,
  feedContent, fileOperation, formRequestBody, type Method, type Operation, type OperationGroup,
  type OperationKey, pagingParameters, type Parameter, type RequestBodyDescription,
  type ResponseDescription, type ResponseHeader, seeOtherResponse, viewResponse,
  withoutHtml } from "./operation.ts"
export { attribute, attributes, dateTime, digits, elementText, extensible, flag, formSchema, list,
  object, oneOf, ref, rootElement, type Schema, text, uri } from "./schema.ts"
