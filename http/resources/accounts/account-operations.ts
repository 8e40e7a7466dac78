/** What the accounts and their tokens take and answer. */
import { Role } from "../../../actors/account/index.ts"
import { type Area, attributes, document, elementText, formOf, list, nothing, oneOf, paging, ref,
  root, text, time, uri, view } from "../../formats/openapi/index.ts"

const role = oneOf(...Role.literals)

const expires = {
  type: "string",
  description: "A time (RFC 3339), a duration (ISO 8601), or seconds from now on; never unless said"
}

const token = {
  ...attributes({ href: uri, id: text, name: text, created: time, expires: time }),
  ...elementText("The token itself, in the one answer to the request that made it.")
}

export const accountOperations: Area = {
  tag: "accounts",
  about: "Who may do what: accounts, their roles and their tokens.",
  schemas: {
    Account: root("account", {
      ...attributes({ href: uri, created: time }),
      name: text,
      role: list(role),
      token: list(ref("Token"))
    }, ["href", "created", "name"]),
    Accounts: root("accounts", { account: list(ref("Account")) }, ["account"]),
    NewAccount: root("account", { name: text, role: { anyOf: [role, list(role)] } }, ["name"]),
    Token: root("token", token, ["href", "id", "created"]),
    Tokens: root("tokens", { ...attributes({ href: uri }), token: list(ref("Token")) }, ["href"]),
    NewToken: root("token", { name: text, expires })
  },
  operations: {
    "GET /accounts": {
      id: "listAccounts",
      summary: "All accounts, by name; for the role admin",
      needs: "role",
      query: paging,
      answers: { 200: view("Accounts", "A page of them") }
    },
    "POST /accounts": {
      id: "createAccount",
      summary: "Makes an account; for the role admin",
      needs: "role",
      body: document("NewAccount", {
        form: formOf({ name: text, role: oneOf("", ...Role.literals) }, ["name"])
      }),
      problems: ["gone"],
      answers: { 201: view("Account", "The account, with its first token", ["Location"]) }
    },
    "GET /accounts/{account}": {
      id: "getAccount",
      summary: "An account, for itself and the role admin",
      needs: "role",
      problems: ["gone"],
      answers: { 200: view("Account", "The account") }
    },
    "DELETE /accounts/{account}": {
      id: "deleteAccount",
      summary: "Removes an account; for the role admin",
      needs: "role",
      problems: ["gone", "conflict"],
      answers: { 204: nothing("It is removed, and its tokens mean nothing") }
    },
    "POST /accounts/{account}/token": {
      id: "createToken",
      summary: "Makes another token, for the account itself and the role admin",
      needs: "role",
      body: document("NewToken", {
        form: formOf({ name: text, expires }),
        isOptional: true
      }),
      problems: ["gone"],
      answers: { 201: view("Token", "The token, shown this once", ["Location"]) }
    },
    "GET /accounts/{account}/tokens": {
      id: "listTokens",
      summary: "The tokens of an account, without themselves",
      needs: "role",
      problems: ["gone"],
      answers: { 200: view("Tokens", "All of them") }
    },
    "DELETE /accounts/{account}/tokens": {
      id: "deleteTokens",
      summary: "Revokes all tokens of an account",
      needs: "role",
      problems: ["gone", "conflict"],
      answers: { 204: nothing("None of them means anything from now on") }
    },
    "GET /accounts/{account}/tokens/{token}": {
      id: "getToken",
      summary: "A token, without itself",
      needs: "role",
      problems: ["gone"],
      answers: { 200: view("Token", "Which one it is") }
    },
    "DELETE /accounts/{account}/tokens/{token}": {
      id: "deleteToken",
      summary: "Revokes a token",
      needs: "role",
      problems: ["gone", "conflict"],
      answers: { 204: nothing("It means nothing from now on") }
    }
  }
}
