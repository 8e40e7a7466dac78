/** The operations of blocks and reports (protocol §7). */
import { attributes, dateTime, documentRequestBody, emptyResponse, formRequestBody, formSchema,
  list, oneOf, pagingParameters, ref, rootElement, seeOtherResponse, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import type { ResourceDefinition, ResourceOperation } from "../../resource.ts"
import { authorizeReader } from "../mailboxes/index.ts"
import { deleteBlock, getBlock, getBlocks, mailboxScope, postBlockForm, postBlocks,
  serviceScope } from "./block-handlers.ts"
import { newBlockFields, reportReasonSchema } from "./moderation-schemas.ts"
import { blockForm } from "./block-views.ts"
import { deleteReport, getDepositor, getReport, getReports, postReport,
  postReportForm } from "./report-handlers.ts"

const source = { account: text, network: text, host: list(text) }

const deletion = formRequestBody(formSchema({ method: oneOf("delete") }, ["method"]))

/** The operations of the blocks of the service, or of a mailbox. */
const blockOperations = (
  pattern: string,
  name: string,
  whose: string,
  scopeOf: typeof serviceScope
): Readonly<Record<string, ResourceOperation>> => {
  const needs = { needs: "role", scopes: ["admin"] } as const
  return {
    [`GET ${pattern}`]: {
      handle: getBlocks(scopeOf),
      id: `list${name}Blocks`,
      summary: `Lists ${whose}`,
      ...needs,
      responses: { 200: viewResponse("Blocks", "All blocks that have not ended") }
    },
    [`POST ${pattern}`]: {
      handle: postBlocks(scopeOf),
      form: ({ request }) => blockForm(request.path),
      id: `create${name}Block`,
      summary: `Adds to ${whose}`,
      ...needs,
      body: documentRequestBody("NewBlock", { form: formSchema(newBlockFields) }),
      problems: ["gone"],
      responses: { 201: viewResponse("Block", "The block") }
    },
    [`GET ${pattern}/{block}`]: {
      handle: getBlock(scopeOf),
      id: `get${name}Block`,
      summary: "Reads a block",
      ...needs,
      responses: { 200: viewResponse("Block", "The block") }
    },
    [`POST ${pattern}/{block}`]: {
      handle: postBlockForm(scopeOf),
      id: `delete${name}BlockByForm`,
      summary: "Removes the block, for a page's form with `method=delete`",
      ...needs,
      body: deletion,
      responses: { 303: seeOtherResponse }
    },
    [`DELETE ${pattern}/{block}`]: {
      handle: deleteBlock(scopeOf),
      id: `delete${name}Block`,
      summary: "Removes a block",
      ...needs,
      isUnconditional: true,
      responses: { 204: emptyResponse("Deposits are taken again") }
    }
  }
}

const blocked = rootElement("block", {
  ...attributes({ href: uri, created: dateTime }),
  account: text,
  network: text,
  host: text,
  expires: dateTime,
  reason: text
}, ["href", "created"])

const report = rootElement("report", {
  ...attributes({ href: uri, time: dateTime, mailbox: uri, notification: uri, by: text }),
  reason: text,
  ...source
}, ["href", "time", "mailbox", "notification", "reason"])

export const moderationResource: ResourceDefinition = {
  tag: "moderation",
  about: "Reports of notifications, and blocks of those who deposit them.",
  isGuarded: true,
  schemas: {
    Block: blocked,
    Blocks: rootElement("blocks", { ...attributes({ href: uri }), block: list(ref("Block")) }, [
      "href",
      "block"
    ]),
    NewBlock: rootElement("block", newBlockFields),
    Depositor: rootElement("depositor", source),
    NewReport: rootElement("report", { reason: reportReasonSchema }, ["reason"]),
    Report: report,
    Reports: rootElement("reports", { report: list(ref("Report")) }, ["report"])
  },
  operations: {
    ...blockOperations("/blocks", "", "what the service takes from nobody", serviceScope),
    ...blockOperations(
      "/mailboxes/{mailbox}/blocks",
      "Mailbox",
      "what the owner of the mailbox takes from nobody",
      mailboxScope
    ),
    "GET /mailboxes/{mailbox}/notifications/{notification}/depositor": {
      handle: getDepositor,
      id: "getDepositor",
      summary: "Reads who has deposited the notification, for the owner and the role admin",
      needs: "role",
      scopes: ["admin"],
      responses: {
        200: viewResponse("Depositor", "The account, or the network of the client", ["Link"])
      }
    },
    "POST /mailboxes/{mailbox}/notifications/{notification}/report": {
      handle: postReport,
      authorize: authorizeReader,
      id: "reportNotification",
      summary: "Reports a notification to the admins",
      needs: "reader",
      scopes: ["read", "admin"],
      body: documentRequestBody("NewReport", {
        form: formSchema({ reason: reportReasonSchema }, ["reason"])
      }),
      responses: {
        202: emptyResponse("The admins see the report", ["Link"])
      }
    },
    "GET /reports": {
      handle: getReports,
      id: "listReports",
      summary: "Lists the reports, newest first, for the role admin",
      needs: "role",
      scopes: ["admin"],
      query: pagingParameters,
      responses: { 200: viewResponse("Reports", "A page of the listing") }
    },
    "GET /reports/{report}": {
      handle: getReport,
      id: "getReport",
      summary: "Reads a report",
      isNeverGone: true,
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("Report", "The report") }
    },
    "POST /reports/{report}": {
      handle: postReportForm,
      id: "deleteReportByForm",
      summary: "Removes the report, for a page's form with `method=delete`",
      isNeverGone: true,
      needs: "role",
      scopes: ["admin"],
      body: deletion,
      responses: { 303: seeOtherResponse }
    },
    "DELETE /reports/{report}": {
      handle: deleteReport,
      id: "deleteReport",
      summary: "Removes a report",
      isNeverGone: true,
      needs: "role",
      scopes: ["admin"],
      isUnconditional: true,
      responses: { 204: emptyResponse("Removed") }
    }
  }
}
