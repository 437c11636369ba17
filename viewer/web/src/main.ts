import "./style.css";
import { startTheme } from "./theme";
import "./parts/say";
import "./parts/text";
import "./parts/event";
import "./parts/dock";
import "./parts/find";
import "./strata/tree";
import "./strata/table";
import "./views/sessions";
import "./views/session";
import "./views/conversation";
import "./views/strata";
import "./views/log";
import "./views/requests";
import "./views/numbers";
import "./app";

startTheme();
