"""Any OpenAI-compatible endpoint as a ``JudgeModel``: the only package that knows the openai SDK.

``judge_model`` asks one question to its end: parameters the model accepts (``parameters``), one HTTP exchange
(``endpoint``), what came back (``completion``), whether it is an answer (``answers``), what it cost (``spending``).
"""
